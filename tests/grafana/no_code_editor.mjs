// In place of the code editor, which no panel needs.
