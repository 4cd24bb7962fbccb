// put_send.c - lines to the agent's Unix socket and its words back: both directions are served, or both sides might wait for each other.
#include "aggregator/put.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { REPLY_MAX = 128 * 1024 };

static int connect_to(const char *path, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(e, -EIO, "the path of the agent's socket is too long: %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    return error_set(e, -EIO, "the agent does not take points now: %s", strerror(code));
}

static int exchange(int fd, struct str text, struct buf *reply, struct error *e)
{
    int64_t until_ns = clock_monotonic_ns() + (int64_t)PUT_ANSWER_TIMEOUT_S * NS_PER_S;
    bool sending = true;
    char answer[4096];
    for (;;) {
        if (sending && !text.size) {
            shutdown(fd, SHUT_WR);
            sending = false;
        }
        int64_t left_ms = (until_ns - clock_monotonic_ns()) / NS_PER_MS;
        struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))};
        int n = left_ms > 0 ? poll(&p, 1, (int)left_ms) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(e, -EIO, "the agent does not answer");
        if (p.revents & POLLOUT) {
            ssize_t put = send(fd, text.data, text.size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (put < 0 && errno != EAGAIN && errno != EINTR)
                return error_set(e, -EIO, "the agent has hung up: %s", strerror(errno));
            if (put > 0)
                text = str_slice(text, (size_t)put, text.size);
        }
        if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
            ssize_t got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
            if (got == 0 && !sending)
                return 0;
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                return error_set(e, -EIO, "the agent has hung up before it had everything");
            if (got > 0)
                buf_add(reply, answer, (size_t)got);
        }
    }
}

// "line 3: words" for each of the first that were refused; behind them, where there are more, "250 lines were refused, …".
static int read_reply(struct str reply, struct put_point **sent, size_t sent_count, struct arena *arena, size_t *failed,
                      struct error *e)
{
    size_t named = 0;
    uint64_t number;
    while (reply.data && reply.size) {
        struct str words = str_trim(str_cut(&reply, '\n')), rest = words, first = str_word(&rest);
        if (str_to_u64(first, &number) && str_starts(str_trim(rest), STR("lines were refused"))) {
            *failed += number > named ? (size_t)(number - named) : 0;
            continue;
        }
        if (!str_eq(first, STR("line")) || !str_to_u64(str_trim(str_cut(&rest, ':')), &number) || !number ||
            number > sent_count)
            continue;
        struct put_point *point = sent[number - 1];
        named += !point->refused.size;
        *failed += !point->refused.size;
        point->refused = arena_str(arena, str_trim(rest));
        if (!point->refused.data)
            return error_set(e, -ENOMEM, "no memory for the points");
    }
    return 0;
}

int put_send(const char *socket_path, struct put_batch *batch, struct arena *arena, size_t *failed, struct error *e)
{
    struct buf text = {0}, reply = {.limit = REPLY_MAX};
    struct put_point **sent = arena_array(arena, batch->count, sizeof *sent);
    size_t sent_count = 0;
    *failed = 0;
    for (size_t i = 0; i < batch->count && sent; i++) {
        if (batch->points[i].refused.size) {
            (*failed)++;
            continue;
        }
        buf_add_str(&text, batch->points[i].line);
        buf_add_char(&text, '\n');
        sent[sent_count++] = &batch->points[i];
    }
    int rc = !sent || text.failed ? error_set(e, -ENOMEM, "no memory for the points") : 0;
    int fd = !rc && sent_count ? connect_to(socket_path, e) : -1;
    if (!rc && sent_count)
        rc = fd < 0 ? fd : exchange(fd, buf_str(&text), &reply, e);
    if (!rc)
        rc = read_reply(buf_str(&reply), sent, sent_count, arena, failed, e);
    if (fd >= 0)
        close(fd);
    buf_free(&text);
    buf_free(&reply);
    return rc;
}
