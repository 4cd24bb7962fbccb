// full_io.h - reads a descriptor to its end, and writes a text completely, even if read() and
// write() are short or interrupted.
#ifndef SONDE_BASE_FULL_IO_H
#define SONDE_BASE_FULL_IO_H

#include "base/str.h"

// Appends the remaining input to *out, which has a limit. Returns 0, -EFBIG if the input exceeds
// the limit, -ENOMEM, or a negative errno of read(). In any case, *out contains the bytes that were
// read so far.
int full_read(int fd, struct buf *out);

// Writes the text. Returns 0, or a negative errno; a part may then have been written. If `fd` is
// non-blocking and its peer does not read, the function waits up to patience_ms at a time, then
// returns -EAGAIN. A closed socket gives -EPIPE without SIGPIPE; a closed pipe gives both.
int full_write(int fd, struct str text, int patience_ms);

// Like full_write, for a formatted line. Adds the newline. Also returns -ENOMEM.
int full_write_line(int fd, int patience_ms, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
