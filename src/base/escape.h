// escape.h - encodes any text as one word of a line, and decodes it; quotes text as one word for a
// shell.
//
//   blank \s   newline \n   carriage return \r   tab \t   backslash \\   other bytes: unchanged
#ifndef SONDE_BASE_ESCAPE_H
#define SONDE_BASE_ESCAPE_H

#include "base/arena.h"

// Returns the letter after the backslash in the escape of `byte`, or 0 if the byte needs no escape.
static inline char escape_letter(char byte)
{
    switch (byte) {
    case ' ':
        return 's';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\\':
        return '\\';
    default:
        return 0;
    }
}

void escape_word(struct buf *out, struct str text);

// Returns the text of an escaped word: the word itself if it has no escapes, otherwise a copy in
// `arena` (its data is NULL if the arena has no room). A backslash before any other letter stands
// for itself.
struct str unescape_word(struct str word, struct arena *arena);

// Appends the text unchanged if a POSIX shell reads it as one word, else 'in quotes'. The text must
// not contain a NUL.
void escape_for_shell(struct buf *out, struct str text);

#endif
