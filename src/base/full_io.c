#include "base/full_io.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 16384 };

// Reads the next piece, up to one byte past the limit. Returns 0 at the end.
static ssize_t read_piece(int fd, struct buf *out)
{
    size_t room = out->limit - out->size;
    char beyond;
    if (room == 0) {
        ssize_t n = read(fd, &beyond, 1);
        return n > 0 ? -EFBIG : n < 0 ? -errno : 0;
    }
    room = room < PIECE_BYTES ? room : PIECE_BYTES;
    if (!buf_reserve(out, room))
        return -ENOMEM;
    ssize_t n = read(fd, out->data + out->size, room);
    out->size += n > 0 ? (size_t)n : 0;
    return n < 0 ? -errno : n;
}

int full_read(int fd, struct buf *out)
{
    ssize_t n;
    do
        n = read_piece(fd, out);
    while (n > 0 || n == -EINTR);
    return (int)n;
}

static ssize_t write_piece(int fd, struct str text)
{
    ssize_t n = send(fd, text.data, text.size, MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK)
        n = write(fd, text.data, text.size);
    return n < 0 ? -errno : n;
}

int full_write(int fd, struct str text, int patience_ms)
{
    while (text.size) {
        ssize_t n = write_piece(fd, text);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (n < 0 && n != -EINTR && (n != -EAGAIN || poll(&room, 1, patience_ms) <= 0))
            return (int)n;
        if (n > 0)
            text = str_slice(text, (size_t)n, text.size);
    }
    return 0;
}

int full_write_line(int fd, int patience_ms, const char *format, va_list args)
{
    struct buf line = {0};
    buf_vprintf(&line, format, args);
    buf_add_char(&line, '\n');
    int rc = line.failed ? -ENOMEM : full_write(fd, buf_str(&line), patience_ms);
    buf_free(&line);
    return rc;
}
