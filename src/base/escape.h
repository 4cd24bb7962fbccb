// escape.h - any text as one word of a line, and back; and as one word for a shell.
//
//   blank \s   newline \n   carriage return \r   tab \t   backslash \\      all other bytes are themselves
#ifndef SONDE_BASE_ESCAPE_H
#define SONDE_BASE_ESCAPE_H

#include "base/arena.h"

// The letter behind the backslash that stands for `byte`; 0: the byte stands for itself.
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

// The text of an escaped word: the word itself if it has no escapes, else a copy in `arena` (data
// NULL: no room there). A backslash before anything else is a backslash.
struct str unescape_word(struct str word, struct arena *arena);

// Unchanged if a POSIX shell reads it as one word, else 'in quotes'. The text has no NUL.
void escape_for_shell(struct buf *out, struct str text);

#endif
