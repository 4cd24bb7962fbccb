// whole.h - descriptors, read to their end and written to the last byte: read() and write() do it in pieces, and may be interrupted.
#ifndef SONDE_BASE_WHOLE_H
#define SONDE_BASE_WHOLE_H

#include "base/str.h"

// Adds what there still is to *out, which has a limit. 0; -EFBIG: there is more than that; -ENOMEM; a negative errno of read(). What has come is in *out in any case.
int whole_read(int fd, struct buf *out);

// 0, or a negative errno: a part of it may have gone. Who does not read (a descriptor with O_NONBLOCK) is waited for, patience_ms at a time: -EAGAIN after that. No socket gives a
// SIGPIPE, only -EPIPE; a pipe does both.
int whole_write(int fd, struct str text, int patience_ms);

// The same with a line, whose end is added; -ENOMEM, too.
int whole_say(int fd, int patience_ms, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

#endif
