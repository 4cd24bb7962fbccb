// full_io.h - reads a descriptor to its end and writes a text completely, across short and
// interrupted read() and write().
#ifndef SONDE_BASE_FULL_IO_H
#define SONDE_BASE_FULL_IO_H

#include "base/str.h"

// Appends the remaining input to *out, which has a limit. Returns 0; -EFBIG if the input exceeds
// the limit; -ENOMEM; or a negative errno of read(). *out has the bytes read so far in any case.
int full_read(int fd, struct buf *out);

// Returns 0, or a negative errno after which a part may have been written. If `fd` is non-blocking
// and its peer does not read, it waits up to patience_ms at a time, then returns -EAGAIN. A closed
// socket gives -EPIPE without SIGPIPE; a closed pipe gives both.
int full_write(int fd, struct str text, int patience_ms);

// The same for a formatted line, to which it adds the newline; also returns -ENOMEM.
int full_write_line(int fd, int patience_ms, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
