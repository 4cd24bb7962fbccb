// put_send.c - sends lines to the agent's socket, and assigns the agent's answers to their points.
#include "base/clock.h"
#include "base/exchange.h"
#include "faces/opentsdb/put.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { REPLY_MAX = 128 * 1024 };

static int exchange(const char *path, struct str text, struct buf *reply, struct error *e)
{
    int fd = exchange_open(path);
    if (fd < 0)
        return error_set(e, -EIO, "the agent does not take points now: %s", strerror(-fd));
    struct exchange x = {.who = "the agent",
                         .text = text,
                         .more = -1,
                         .patience_ms = PUT_ANSWER_TIMEOUT_S * 1000,
                         .until_ns =
                             clock_monotonic_ns() + (int64_t)PUT_ANSWER_TIMEOUT_S * NS_PER_S,
                         .answer = reply};
    int rc = exchange_run(fd, &x, e);
    close(fd);
    if (rc)
        e->code = -EIO; // not the client's mistake
    return rc ? -EIO : 0;
}

// Reads "line 3: text" for each of the first refused lines; if there are more, "250 lines were
// refused, …" follows.
static int read_reply(struct str reply, struct put_point **sent, size_t sent_count,
                      struct arena *arena, size_t *failed, struct error *e)
{
    size_t named = 0;
    uint64_t number;
    while (reply.data && reply.size) {
        struct str words = str_trim(str_cut(&reply, '\n')), rest = words, first = str_word(&rest);
        if (str_to_u64(first, &number) && str_starts(str_trim(rest), STR("lines were refused"))) {
            *failed += number > named ? (size_t)(number - named) : 0;
            continue;
        }
        if (!str_eq(first, STR("line")) || !str_to_u64(str_trim(str_cut(&rest, ':')), &number) ||
            !number || number > sent_count)
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

int put_send(const char *socket_path, struct put_batch *batch, struct arena *arena, size_t *failed,
             struct error *e)
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
    if (!rc && sent_count)
        rc = exchange(socket_path, buf_str(&text), &reply, e);
    if (!rc)
        rc = read_reply(buf_str(&reply), sent, sent_count, arena, failed, e);
    buf_free(&text);
    buf_free(&reply);
    return rc;
}
