// connections.c - sockets, each watched by one uv_poll_t.
//
// The first bytes of a connection show its kind (ingest/hello.h). The connection of a program
// carries only doorbells; its end means that the program may have ended. On a text connection the
// agent reads lines, and answers bad ones. When the sender closes its side, the agent handles the
// last line, sends the remaining answers, and closes the connection. So a sender that half-closes
// and reads to the end knows which lines were stored. On the connection of a query process (a
// process that answers queries), requests for drains come in. After a drain, the number of the last
// request goes out (wire/drain.h).
#include "agent/connections.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "ingest/hello.h"
#include "wire/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_SIZE = 65536,    // more than any datagram
    ACCEPTS_A_ROUND = 64, // connections to accept before other work has its turn
    READS_A_ROUND = 16,
    // when the agent ends, limit of reads from a sender that never pauses: 256 MiB
    READS_AT_END = 4096,
};

enum kind { NEW, TEXT, PROGRAM, QUERY_PROCESS };

struct connection {
    uv_poll_t poll; // the first member: a pointer to the handle also points to the connection
    struct connections *all;
    struct list_link link; // in list all->open
    int fd;
    enum kind kind;
    pid_t pid;
    struct ingest_lines *lines;
    struct buf reply;
    size_t sent; // bytes of `reply` that are sent
    bool ended;  // the peer has closed its side
    bool closing;
    // Members of a query process's connection.
    struct list_link waiting;     // in list all->waiting, while it waits for a drain
    struct drain_request request; // the last complete request
    char part[sizeof(struct drain_request)];
    size_t part_size;
    bool asking;
};

struct listener {
    uv_poll_t poll;
    int fd;    // -1: none
    bool open; // its handle is open
    struct connections *all;
};

struct connections {
    uv_loop_t *loop;
    struct ingest *in;
    struct connections_events events;
    struct listener listeners[CONNECTIONS_LISTENERS_MAX];
    uv_poll_t datagrams;
    int udp;
    bool datagrams_open; // its handle
    int spare; // closed when no descriptor is left, so that one is free to refuse a connection
    struct ingest_lines *udp_lines;
    struct list_link open;    // all connections
    struct list_link waiting; // connections that wait for a drain
    size_t strangers;         // number of connections of the kind NEW
    struct connections_stats stats;
    char piece[READ_SIZE];
};

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void ring(struct connections *all)
{
    all->events.bell(all->events.user);
}

static void close_connection(struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    list_remove(&c->waiting);
    c->all->strangers -= c->kind == NEW;
    list_remove(&c->link);
    c->all->stats.open--;
    c->all->stats.senders -= c->kind == TEXT;
    uv_close((uv_handle_t *)&c->poll, on_closed);
    close(c->fd); // closed only now, because uv_close still uses the descriptor
    ingest_lines_destroy(c->lines);
    buf_free(&c->reply);
}

static void on_event(uv_poll_t *poll, int status, int events);

// Sends `reply`, which is empty after all is sent. Returns false if the peer has closed the
// connection.
static bool send_reply(struct connection *c)
{
    while (c->sent < c->reply.size) {
        ssize_t n = send(c->fd, c->reply.data + c->sent, c->reply.size - c->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        c->sent += (size_t)n;
    }
    c->sent = 0;
    c->reply.size = 0;
    c->reply.failed = false;
    return true;
}

static void end_program(struct connection *c)
{
    struct connections *all = c->all;
    pid_t pid = c->pid;
    close_connection(c);
    ingest_hangup(all->in, pid);
    ring(all);
}

// Sets the kind of a connection.
static void become(struct connection *c, enum kind kind)
{
    c->all->strangers--;
    c->kind = kind;
}

static void begin_program(struct connection *c, struct ingest_descriptors fds)
{
    become(c, PROGRAM);
    int failed = ingest_attach(c->all->in, fds, c->pid);
    // If the program's segment was found before its HELLO, the connection serves as its doorbell.
    if (failed && failed != -EBUSY) {
        c->all->stats.refused_hello++;
        log_warning("cannot read the data of process %ld: %s", (long)c->pid, strerror(-failed));
        close_connection(c);
        return;
    }
    ring(c->all);
}

// True if the connection begins with a request for a drain. Its first byte has arrived. The
// connection gets the pid of the query process.
static bool is_query_process(struct connection *c)
{
    unsigned char first;
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (recv(c->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || first != (DRAIN_MAGIC & 0xff) ||
        getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    c->pid = peer.pid;
    return true;
}

// Determines the kind of a connection. Returns true if it is known and there may be more to read.
static bool recognise(struct connection *c)
{
    struct ingest_descriptors fds;
    pid_t pid;
    int what = ingest_receive_hello(c->fd, &fds, &pid);
    if (what == -EAGAIN || what == -EINTR)
        return false;
    // Only now, because a byte that arrives between two checks must not decide between two kinds.
    if (what == -ENOMSG && is_query_process(c)) {
        become(c, QUERY_PROCESS);
        return true;
    }
    if (what == 0) {
        c->pid = pid;
        begin_program(c, fds);
        return !c->closing;
    }
    if (what == -EPROTONOSUPPORT)
        ingest_warn_version(pid);
    if (what != -ENOMSG) {
        c->all->stats.refused_hello += what != -ENOTCONN;
        close_connection(c);
        return false;
    }
    become(c, TEXT);
    c->all->stats.senders++;
    c->reply.limit = CONNECTION_REPLY_MAX;
    if (ingest_lines_create(c->all->in, &c->lines) != 0) {
        log_warning("no memory for a connection");
        close_connection(c);
        return false;
    }
    return true;
}

// Reads pending requests; the answer to the last one answers all. Returns false if no more have
// arrived.
static bool read_requests(struct connection *c)
{
    struct connections *all = c->all;
    ssize_t n = recv(c->fd, c->part + c->part_size, sizeof c->part - c->part_size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return errno == EINTR;
    if (n > 0)
        c->part_size += (size_t)n;
    if (n > 0 && c->part_size < sizeof c->part)
        return true;
    if (n > 0)
        memcpy(&c->request, c->part, sizeof c->request);
    if (n <= 0 || c->request.magic != DRAIN_MAGIC) {
        all->stats.refused_hello += n > 0;
        close_connection(c);
        return false;
    }
    c->part_size = 0;
    if (!c->asking) {
        c->asking = true;
        list_prepend(&all->waiting, &c->waiting);
    }
    return true;
}

// Reads once. Returns false if nothing more has arrived.
static bool read_piece(struct connection *c)
{
    if (c->kind == QUERY_PROCESS)
        return read_requests(c);
    ssize_t n = recv(c->fd, c->all->piece, READ_SIZE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (n < 0 && errno == EINTR)
        return true;
    if (c->kind == PROGRAM) {
        if (n <= 0)
            end_program(c);
        else
            ring(c->all);
        return n > 0;
    }
    if (n > 0) {
        ingest_lines_feed(c->lines, (struct str){c->all->piece, (size_t)n}, &c->reply);
        return true;
    }
    ingest_lines_end(c->lines, &c->reply);
    c->ended = true;
    return false;
}

static void watch(struct connection *c)
{
    int events = (c->ended ? 0 : UV_READABLE) | (c->reply.size ? UV_WRITABLE : 0);
    uv_poll_start(&c->poll, events, on_event);
}

static void serve(struct connection *c, unsigned reads)
{
    if (c->kind == NEW && !recognise(c))
        return;
    while (!c->closing && !c->ended && reads-- > 0 && read_piece(c))
        ;
    if (!c->closing && c->asking)
        c->all->events.drain_requested(c->all->events.user);
    if (c->closing || c->kind == PROGRAM || c->kind == QUERY_PROCESS)
        return;
    bool reachable = send_reply(c);
    if (!reachable) {
        c->reply.size = 0;
        c->sent = 0;
    }
    if (c->ended && c->reply.size == 0)
        close_connection(c);
    else
        watch(c);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct connection *c = (struct connection *)poll;
    (void)events;
    if (status < 0 && c->ended) {
        close_connection(c); // the peer has closed the connection before it got its answers
        return;
    }
    // recv returns the same error again, and the code after it handles the error.
    serve(c, READS_A_ROUND);
}

// True if the peer may connect: it runs as our user, or as root.
static bool is_ours(struct connections *all, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    if (peer.uid == geteuid() || peer.uid == 0)
        return true;
    if (all->stats.refused_user++ == 0)
        log_warning("refused a connection of user %u (process %ld); more are counted, not listed",
                    (unsigned)peer.uid, (long)peer.pid);
    return false;
}

static void refuse(int fd, struct str words)
{
    if (send(fd, words.data, words.size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("a refused connection was gone already");
    close(fd);
}

static void add_connection(struct connections *all, int fd)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c || uv_poll_init(all->loop, &c->poll, fd) != 0) {
        free(c);
        all->stats.refused_limit++;
        close(fd);
        return;
    }
    c->all = all;
    c->fd = fd;
    list_prepend(&all->open, &c->link);
    list_init(&c->waiting);
    all->stats.open++;
    all->strangers++;
    uv_poll_start(&c->poll, UV_READABLE, on_event);
    recognise(c); // at once, because an unread HELLO would be lost when this agent ends
    if (c->kind != QUERY_PROCESS) // the loop reads its request
        ring(all);
}

// Accepts one connection. Returns false if none is pending.
static bool accept_one(struct connections *all, int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && all->spare >= 0) {
        // Accept the connection only to close it. Otherwise it would stay pending, and the event
        // loop would spin.
        close(all->spare);
        fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            all->stats.refused_limit++;
            refuse(fd, STR("the agent has too many files open\n"));
        }
        all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return fd >= 0;
    }
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    if (!is_ours(all, fd)) {
        refuse(fd, STR("this agent serves another user\n"));
    } else if (all->stats.open >= CONNECTIONS_MAX) {
        all->stats.refused_limit++;
        refuse(fd, STR("the agent has too many connections\n"));
    } else {
        add_connection(all, fd);
    }
    return true;
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS_A_ROUND && accept_one(l->all, l->fd); i++)
        ;
}

static void read_datagrams(struct connections *all, unsigned most)
{
    // UDP has no answers, so bad lines are only counted
    struct buf answers = {.limit = CONNECTION_REPLY_MAX};
    for (unsigned i = 0; i < most; i++) {
        ssize_t n = recv(all->udp, all->piece, READ_SIZE, MSG_DONTWAIT);
        if (n < 0)
            break;
        ingest_lines_feed(all->udp_lines, (struct str){all->piece, (size_t)n}, &answers);
        ingest_lines_end(all->udp_lines, &answers);
        answers.size = 0;
    }
    buf_free(&answers);
}

static void on_datagram(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    read_datagrams(poll->data, READS_A_ROUND);
}

int agent_connections_udp(int port, struct error *e)
{
    if (port < 1 || port > 65535)
        return error_set(e, -EINVAL, "UDP port %d is not between 1 and 65535", port);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int code = -errno;
        if (fd >= 0)
            close(fd);
        return error_set(e, code, "cannot listen on UDP port %d: %s", port, strerror(-code));
    }
    return fd;
}

// Accepts all pending connections.
static void accept_all(struct connections *all)
{
    for (size_t i = 0; i < CONNECTIONS_LISTENERS_MAX; i++)
        while (all->listeners[i].open && accept_one(all, all->listeners[i].fd))
            ;
}

static int start_listener(struct connections *all, struct listener *l)
{
    int failed = uv_poll_init(all->loop, &l->poll, l->fd);
    if (failed)
        return failed;
    l->open = true;
    l->all = all;
    l->poll.data = l;
    return uv_poll_start(&l->poll, UV_READABLE, on_knock);
}

int agent_connections_create(uv_loop_t *loop, struct ingest *in,
                             const int listening[CONNECTIONS_LISTENERS_MAX], int udp,
                             const struct connections_events *events, struct connections **out,
                             struct error *e)
{
    *out = NULL;
    struct connections *all = calloc(1, sizeof *all);
    if (!all) {
        for (size_t i = 0; i < CONNECTIONS_LISTENERS_MAX; i++)
            if (listening[i] >= 0)
                close(listening[i]);
        if (udp >= 0)
            close(udp);
        return error_set(e, -ENOMEM, "no memory for connections");
    }
    all->loop = loop;
    all->in = in;
    all->events = *events;
    all->udp = udp;
    all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    list_init(&all->open);
    list_init(&all->waiting);
    *out = all;
    int failed = 0;
    for (size_t i = 0; i < CONNECTIONS_LISTENERS_MAX; i++) {
        all->listeners[i].fd = listening[i];
        if (!failed && listening[i] >= 0)
            failed = start_listener(all, &all->listeners[i]);
    }
    if (!failed && udp >= 0) {
        failed = ingest_lines_create(in, &all->udp_lines);
        if (!failed)
            failed = uv_poll_init(loop, &all->datagrams, udp);
        if (!failed) {
            all->datagrams_open = true;
            all->datagrams.data = all;
            failed = uv_poll_start(&all->datagrams, UV_READABLE, on_datagram);
        }
    }
    return failed ? error_set(e, failed, "cannot watch the agent's socket: %s", uv_strerror(failed))
                  : 0;
}

void agent_connections_gather(struct connections *all)
{
    accept_all(all);
    // A HELLO may have arrived since the connection was accepted.
    if (!all->strangers)
        return;
    LIST_EACH (link, &all->open) {
        struct connection *c = LIST_OF(link, struct connection, link);
        if (c->kind == NEW)
            recognise(c);
    }
}

static bool tell_asker(struct connection *c)
{
    ssize_t sent;
    do
        sent =
            send(c->fd, &c->request.number, sizeof c->request.number, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof c->request.number;
}

void agent_connections_answer(struct connections *all)
{
    bool cells = false;
    LIST_EACH (link, &all->waiting) {
        const struct connection *c = LIST_OF(link, struct connection, waiting);
        if (c->request.flags & DRAIN_CELLS)
            ingest_ask_cells(all->in, c->pid);
        cells = cells || c->request.flags & DRAIN_CELLS;
    }
    if (cells)
        ingest_sample_requested(all->in, clock_realtime_ns());
    for (struct list_link *link; (link = list_take_first(&all->waiting));) {
        struct connection *c = LIST_OF(link, struct connection, waiting);
        c->asking = false;
        all->stats.answered_drains++;
        if (!tell_asker(c))
            close_connection(c); // the peer has gone, or does not read
    }
}

void agent_connections_finish(struct connections *all)
{
    accept_all(all);
    for (size_t i = 0; i < CONNECTIONS_LISTENERS_MAX; i++) {
        struct listener *l = &all->listeners[i];
        if (!l->open)
            continue;
        uv_close((uv_handle_t *)&l->poll, NULL);
        l->open = false;
        close(l->fd);
        l->fd = -1;
    }
    if (all->datagrams_open) {
        read_datagrams(all, READS_AT_END);
        uv_close((uv_handle_t *)&all->datagrams, NULL);
        all->datagrams_open = false;
    }
    LIST_EACH (link, &all->open) {
        struct connection *c = LIST_OF(link, struct connection, link);
        serve(c, READS_AT_END);
        if (c->closing)
            continue;
        if (c->kind == TEXT && !c->ended) {
            ingest_lines_end(c->lines, &c->reply);
            send_reply(c);
        }
        close_connection(c);
    }
}

void agent_connections_destroy(struct connections *all)
{
    if (!all)
        return;
    ingest_lines_destroy(all->udp_lines);
    for (size_t i = 0; i < CONNECTIONS_LISTENERS_MAX; i++)
        if (all->listeners[i].fd >= 0)
            close(all->listeners[i].fd);
    if (all->udp >= 0)
        close(all->udp);
    if (all->spare >= 0)
        close(all->spare);
    free(all);
}

void agent_connections_get_stats(const struct connections *all, struct connections_stats *out)
{
    *out = all->stats;
}
