// Replaces the code editor, which no panel needs.
