// printable.h - text that others wrote (names, tags, messages, paths), made fit for a terminal.
//
// A tag's value may hold anything. Printed as it is, it could move the cursor, set the window's
// title, answer for the keyboard, hide a line, or write a second one. So whatever people read goes
// through here, once: control characters, bytes that are no UTF-8, and characters that turn the
// direction of text become \n, \r, \t, \xNN. All else is as it was; the text of a text that is
// printable is the same.
#ifndef SONDE_BASE_PRINTABLE_H
#define SONDE_BASE_PRINTABLE_H

#include "base/str.h"

void printable_add(struct buf *out, struct str text);

// What is printed, and all that it holds, as one line's text.
void printable_printf(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The buffer's text from `from` on becomes printable.
void printable_since(struct buf *out, size_t from);

// Into an array, cut to `size` with the NUL. Returns the length.
size_t printable_copy(char *out, size_t size, struct str text);

#endif
