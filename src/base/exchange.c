#include "base/exchange.h"

#include "base/agent_address.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 * 1024, ANSWER_BYTES = 4096 };

int exchange_open(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = fd < 0 ? errno : agent_connect(fd, path);
    if (!failed)
        return fd;
    if (fd >= 0)
        close(fd);
    return -failed;
}

// Returns the timeout for poll(): how long the other side may stay idle.
static int wait_ms(const struct exchange *x, bool for_more)
{
    int most_ms = for_more ? -1 : x->patience_ms;
    if (!x->until_ns)
        return most_ms;
    int64_t left_ms = (x->until_ns - clock_monotonic_ns()) / NS_PER_MS;
    left_ms = left_ms > 0 ? left_ms : 0;
    return most_ms >= 0 && most_ms < left_ms ? most_ms : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

static int put(int fd, const struct exchange *x, struct str *text, struct error *e)
{
    ssize_t n = send(fd, text->data, text->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return error_set(e, -errno, "%s has hung up: %s", x->who, strerror(errno));
    if (n > 0)
        *text = str_slice(*text, (size_t)n, text->size);
    return 0;
}

// Reads pending bytes of the answer. Returns 1 if the other side has closed the connection, as it
// should.
static int take(int fd, const struct exchange *x, bool sending, struct error *e)
{
    char piece[ANSWER_BYTES];
    ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n == 0 && !sending)
        return 1;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return error_set(e, -EPIPE, "%s has hung up before it had received everything", x->who);
    if (n > 0)
        buf_add(x->answer, piece, (size_t)n);
    return 0;
}

int exchange_run(int fd, const struct exchange *x, struct error *e)
{
    char piece[PIECE_BYTES];
    struct str text = x->text;
    int more = x->more, rc = 0;
    bool sending = true;
    while (rc == 0) {
        bool for_more = sending && more >= 0 && text.size == 0;
        if (sending && !for_more && text.size == 0) {
            shutdown(fd, SHUT_WR);
            sending = false;
        }
        struct pollfd fds[] = {
            {.fd = fd, .events = (short)(POLLIN | (text.size > 0 ? POLLOUT : 0))},
            {.fd = for_more ? more : -1, .events = POLLIN}};
        int n = poll(fds, 2, wait_ms(x, for_more));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(e, -ETIMEDOUT, "%s does not answer", x->who);
        if (fds[1].revents) {
            ssize_t got = read(more, piece, sizeof piece);
            if (got < 0 && errno != EINTR)
                return error_set(e, -errno, "cannot read the data to send: %s", strerror(errno));
            more = got == 0 ? -1 : more;
            text = (struct str){piece, got > 0 ? (size_t)got : 0};
        }
        if (fds[0].revents & POLLOUT)
            rc = put(fd, x, &text, e);
        if (rc == 0 && fds[0].revents & (POLLIN | POLLHUP | POLLERR))
            rc = take(fd, x, sending, e);
    }
    return rc > 0 ? 0 : rc;
}
