// whole.h - reads a descriptor to its end and writes a text completely, across short and
// interrupted read() and write().
#ifndef SONDE_BASE_WHOLE_H
#define SONDE_BASE_WHOLE_H

#include "base/str.h"

// Appends the remaining input to *out, which has a limit. 0; -EFBIG: the input exceeds the limit;
// -ENOMEM; a negative errno of read(). *out has the bytes so far in any case.
int whole_read(int fd, struct buf *out);

// 0, or a negative errno after which a part may have been written. Waits for a peer that does not
// read (O_NONBLOCK) up to patience_ms at a time, then returns -EAGAIN. No socket gives a SIGPIPE,
// only -EPIPE; a pipe does both.
int whole_write(int fd, struct str text, int patience_ms);

// The same with a line, whose end is added; -ENOMEM, too.
int whole_say(int fd, int patience_ms, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
