// printable.h - escapes foreign text (names, tags, messages, paths) for a terminal.
//
// A tag's value may contain any bytes. If a program prints them unchanged, they could move the
// cursor, set the window's title, send input as if typed on the keyboard, hide a line, or fake one.
// So all output for people passes through these functions once. Control characters, bytes that are
// not UTF-8, and characters that change the direction of text become \n, \r, \t, \xNN. All other
// bytes stay, so escaping twice changes nothing.
#ifndef SONDE_BASE_PRINTABLE_H
#define SONDE_BASE_PRINTABLE_H

#include "base/str.h"

void printable_add(struct buf *out, struct str text);

// Like printf; escapes the whole result, line ends included.
void printable_printf(struct buf *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Escapes the buffer's text from offset `from` on.
void printable_since(struct buf *out, size_t from);

// Writes escaped text to an array, cut to `size` with the NUL. Returns the length.
size_t printable_copy(char *out, size_t size, struct str text);

#endif
