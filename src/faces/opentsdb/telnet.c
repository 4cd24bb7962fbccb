// telnet.c - the table of commands.
#include "faces/opentsdb/telnet.h"

#include "base/clock.h"

#include <stdlib.h>

void telnet_begin(struct telnet *t, struct service *service)
{
    *t = (struct telnet){.service = service, .admitted = !auth_needs_token(&service->site->auth)};
}

void telnet_free(struct telnet *t)
{
    buf_free(&t->line);
}

typedef void command_fn(struct telnet *t, struct str line, struct buf *reply, struct buf *points);

static void put(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    enum { NEEDED = 4 };
    struct str rest = line;
    int words = -1; // does not count the word put
    while (str_word(&rest).size)
        words++;
    if (!t->admitted)
        buf_add_str(reply, STR("put: a token is needed first: auth TOKEN\n"));
    else if (words < NEEDED)
        buf_printf(reply, "put: illegal argument: not enough arguments (need least %d, got %d)\n",
                   NEEDED, words);
    else
        buf_printf(points, "%.*s\n", STR_ARG(line));
}

static void auth(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    (void)points;
    str_word(&line);
    enum role role = auth_role_of(&t->service->site->auth, str_trim(line));
    if (role >= ROLE_WRITE)
        t->admitted = true;
    else
        buf_add_str(reply, role ? STR("auth: this token may only view; sonde token --write prints "
                                      "one that may put\n")
                                : STR("auth: this is not the job's token\n"));
}

static void version(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    (void)t, (void)line, (void)points;
    buf_add_str(reply, STR("sonde " SONDE_VERSION " speaks OpenTSDB's telnet protocol\n"));
}

static void stats(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    (void)line, (void)points;
    struct connection_counts c;
    long long now = (long long)(clock_realtime_ns() / NS_PER_S);
    connections_counts(t->service->connections, &c);
    buf_printf(reply, "tsd.connectionmgr.connections %lld %u\n", now, c.open);
    buf_printf(reply, "tsd.connectionmgr.connections.total %lld %llu\n", now,
               (unsigned long long)c.accepted);
    buf_printf(reply, "tsd.uptime %lld %lld\n", now,
               (long long)((clock_monotonic_ns() - t->service->started_ns) / NS_PER_S));
}

static void help(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    (void)t, (void)line, (void)points;
    buf_add_str(reply, STR("available commands: auth exit help put stats version\n"));
}

static void leave(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    (void)line, (void)reply, (void)points;
    t->ended = true;
}

static const struct {
    struct str name;
    command_fn *run;
} commands[] = {
    {STR("put"), put},     {STR("auth"), auth}, {STR("version"), version},
    {STR("stats"), stats}, {STR("help"), help}, {STR("exit"), leave},
};

static void take_line(struct telnet *t, struct str line, struct buf *reply, struct buf *points)
{
    line = str_trim(line);
    struct str rest = line, word = str_word(&rest);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (str_eq(commands[i].name, word)) {
            commands[i].run(t, line, reply, points);
            return;
        }
    }
    if (word.size)
        buf_add_str(reply, STR("unknown command.  Try `help'.\n"));
}

void telnet_feed(struct telnet *t, struct str piece, struct buf *reply, struct buf *points)
{
    bool last = !piece.size;
    while (piece.data && piece.size && !t->ended) {
        struct str line = str_cut(&piece, '\n');
        buf_add_str(&t->line, line);
        size_t most = t->admitted ? TELNET_LINE_MAX : TELNET_LINE_OPEN_MAX;
        if (t->line.size > most || t->line.failed) {
            buf_printf(reply, "error: a line may have %zu bytes%s\n", most,
                       t->admitted ? "" : " before auth");
            t->ended = true;
            return;
        }
        if (!piece.data)
            return; // incomplete line
        take_line(t, buf_str(&t->line), reply, points);
        t->line.size = 0;
    }
    if (last && !t->ended) {
        take_line(t, buf_str(&t->line), reply, points);
        t->ended = true;
    }
}

void telnet_agent_answered(struct str piece, struct buf *rest, struct buf *reply)
{
    buf_add_str(rest, piece);
    struct str text = buf_str(rest);
    ptrdiff_t end;
    while ((end = str_find_char(text, '\n')) >= 0) {
        struct str words = str_slice(text, 0, (size_t)end);
        if (str_starts(words, STR("line ")) && str_find_char(words, ':') >= 0)
            str_cut(&words, ':');
        words = str_trim(words);
        buf_printf(reply, "put: illegal argument: %.*s\n", STR_ARG(words));
        text = str_slice(text, (size_t)end + 1, text.size);
    }
    if (text.size)
        memmove(rest->data, text.data, text.size);
    rest->size = text.size;
}

// ---- the line protocol

static void *begin_session(void *service)
{
    struct telnet *t = malloc(sizeof *t);
    if (t)
        telnet_begin(t, service);
    return t;
}

static void end_session(void *session)
{
    telnet_free(session);
    free(session);
}

static void feed_session(void *session, struct str piece, struct buf *reply, struct buf *onward)
{
    telnet_feed(session, piece, reply, onward);
}

static bool is_admitted(const void *session)
{
    const struct telnet *t = session;
    return t->admitted;
}

static bool has_ended(const void *session)
{
    const struct telnet *t = session;
    return t->ended;
}

struct line_protocol telnet_protocol(struct service *service)
{
    return (struct line_protocol){.socket = service->agent_socket.data,
                                  .user = service,
                                  .begin = begin_session,
                                  .end = end_session,
                                  .feed = feed_session,
                                  .answered = telnet_agent_answered,
                                  .is_admitted = is_admitted,
                                  .has_ended = has_ended};
}
