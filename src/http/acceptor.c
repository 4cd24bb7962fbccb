// acceptor.c - an epoll over the listening socket, connections that have not sent a byte yet,
// clients of the line protocol, and the sockets to which their lines go.
#include "http/acceptor.h"

#include "base/agent_address.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,
    ACCEPTS_A_ROUND = 64,
    PIECE_BYTES = 16384,
    // pending bytes in one direction; above this limit, the other side is not read
    WAITING_BYTES_MAX = 256 * 1024,
    NO_DESCRIPTOR_MS = 100, // no connection is accepted for this time after no descriptor was left,
    NO_ROOM_MS = 5,         // and after the table had no room
    PLACE_LOOK_MS = 5,      // interval of checks for a free place while connections wait,
    SILENT_LOOK_MS = 1000,  // and while all of them are silent
    // the number of waiting connections is limited to this multiple of the table's places
    WAITING_SHARE = 4,
};

struct side {
    struct client *client;
    int fd; // -1: none
    struct buf out;
    uint32_t watched; // events that epoll watches
};

struct client {
    struct list_link of_all; // in list acceptor.clients
    struct connection *entry;
    struct side here, agent; // pending output: lines in agent.out, answers in here.out
    void *session;           // session of the line protocol; NULL: not begun
    struct buf agent_line;   // an incomplete line from the agent
    bool dead;
    bool waits, has_sent; // waits for a place in the table; has sent its first byte
    struct peer peer;     // set while it waits
    int64_t since_ns;     // start of the wait
    bool end_forwarded;   // the agent got the end of input
    struct sockaddr_storage address;
    socklen_t address_size;
};

struct acceptor {
    pthread_t thread;
    struct acceptor_options o;
    int epoll, stop;
    int pause_ms;             // 0: new connections are accepted
    struct list_link clients; // in order of arrival
    unsigned waiting, ready; // number of waiting connections; number of those that have sent a byte
};

static struct client *client_of(struct list_link *link)
{
    return LIST_OF(link, struct client, of_all);
}

static bool watch(struct acceptor *a, struct side *side, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = side};
    if (side->watched == events)
        return true;
    int how = side->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    // epoll reports errors and hang-ups even without requested events, so remove a side without
    // any.
    if (!events)
        how = EPOLL_CTL_DEL;
    side->watched = events;
    return epoll_ctl(a->epoll, how, side->fd, &event) == 0;
}

static void wait_no_more(struct acceptor *a, struct client *c, enum wait_end how)
{
    a->waiting--;
    a->ready -= c->has_sent;
    c->waits = false;
    connections_wait_ended(a->o.connections, how);
}

static void drop(struct acceptor *a, struct client *c, bool close_it)
{
    watch(a, &c->here, 0);
    if (c->agent.fd >= 0) {
        watch(a, &c->agent, 0);
        close(c->agent.fd);
    }
    c->agent.fd = -1;
    if (c->waits)
        wait_no_more(a, c, WAIT_EVICTED);
    if (c->entry)
        // before another connection can get the same descriptor number
        connections_remove(a->o.connections, c->entry);
    if (close_it)
        close(c->here.fd);
    c->dead = true; // freed after the round, which may have one more event for it
}

static void free_dead(struct acceptor *a)
{
    LIST_EACH (link, &a->clients) {
        struct client *c = client_of(link);
        if (!c->dead)
            continue;
        list_remove(link);
        if (c->session)
            a->o.lines->end(c->session);
        buf_free(&c->here.out);
        buf_free(&c->agent.out);
        buf_free(&c->agent_line);
        free(c);
    }
}

static struct client *keep(struct acceptor *a, int fd, const struct sockaddr_storage *address,
                           socklen_t size)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->address = *address;
    c->address_size = size;
    c->here = (struct side){.client = c, .fd = fd};
    c->agent = (struct side){.client = c, .fd = -1};
    list_append(&a->clients, &c->of_all);
    return c;
}

// ---- waiting for a place in the table

// Closes the silent connection that has waited longest. Returns false if all have sent something.
static bool turn_away_one(struct acceptor *a)
{
    LIST_EACH (link, &a->clients) {
        struct client *c = client_of(link);
        if (c->dead || !c->waits || c->has_sent)
            continue;
        drop(a, c, true);
        return true;
    }
    return false;
}

// Lets a connection wait. Returns false if it need not wait, or if too many connections wait.
static bool let_wait(struct acceptor *a, struct peer_lookup *peer,
                     const struct sockaddr_storage *address, socklen_t size)
{
    struct connections *table = a->o.connections;
    if (!connections_should_wait(table, peer))
        return false;
    if (a->waiting / WAITING_SHARE >= a->o.connections_max && !turn_away_one(a))
        return false;
    struct client *c = keep(a, peer->fd, address, size);
    if (!c)
        return false;
    c->peer = *peer_lookup_get(peer);
    c->since_ns = clock_monotonic_ns();
    c->waits = true;
    a->waiting++;
    connections_wait(table);
    if (!watch(a, &c->here, EPOLLIN))
        drop(a, c, true);
    return true;
}

// Reads the client's first byte, and leaves it in the socket. Returns false if none has arrived, or
// if the connection has ended and was dropped.
static bool peek_first(struct acceptor *a, struct client *c, char *first)
{
    ssize_t n = recv(c->here.fd, first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0)
        return true;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        drop(a, c, true);
    return false;
}

static void hear_waiting(struct acceptor *a, struct client *c)
{
    char first;
    if (!peek_first(a, c, &first))
        return;
    c->has_sent = true;
    a->ready++;
    watch(a, &c->here, 0); // ignore events until the connection has a place
}

// True if a client on this machine has closed its socket. A client that has only shut down its
// sending side still reads answers.
static bool has_gone(const struct client *c)
{
    struct peer now;
    if (!c->peer.known)
        return false;
    peer_look(c->here.fd, (const struct sockaddr *)&c->address, &now);
    return !now.known || now.inode != c->peer.inode;
}

static void admit(struct acceptor *a, struct client *c)
{
    if (has_gone(c)) {
        drop(a, c, true);
        return;
    }
    wait_no_more(a, c, WAIT_ADMITTED);
    if (!a->o.lines) {
        drop(a, c, false);
        a->o.give(a->o.user, c->here.fd, (struct sockaddr *)&c->address, c->address_size);
        return;
    }
    struct peer_lookup peer = {.fd = c->here.fd, .done = true, .peer = c->peer};
    c->entry = connections_add(a->o.connections, &peer);
    if (!c->entry) {
        drop(a, c, true);
        return;
    }
    if (!watch(a, &c->here, EPOLLIN))
        drop(a, c, true);
}

// Gives free places to waiting connections that have sent something, the oldest first. If a client
// gets no place, others still may.
static void admit_waiting(struct acceptor *a)
{
    int64_t now_ns = clock_monotonic_ns();
    const struct peer *refused = NULL;
    LIST_EACH (link, &a->clients) {
        struct client *c = client_of(link);
        if (!a->waiting)
            break;
        if (c->dead || !c->waits)
            continue;
        bool ready = c->has_sent && !(refused && peer_equal(refused, &c->peer));
        if (ready && connections_take_place(a->o.connections, &c->peer)) {
            admit(a, c);
            continue;
        }
        if (ready)
            refused = &c->peer; // valid until free_dead
        if (now_ns - c->since_ns >= a->o.idle_timeout_ns) {
            wait_no_more(a, c, WAIT_TIMED_OUT);
            drop(a, c, true);
        }
    }
}

// Closes a connection such that the kernel keeps no state of it.
static void reset(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

static void accept_one(struct acceptor *a, int fd, const struct sockaddr_storage *address,
                       socklen_t size)
{
    struct peer_lookup peer = {.fd = fd, .client = (const struct sockaddr *)address};
    if (!connections_in_pace(a->o.connections, &peer)) {
        reset(fd);
        return;
    }
    if (let_wait(a, &peer, address, size))
        return;
    if (!a->o.lines) {
        a->o.give(a->o.user, fd, (const struct sockaddr *)address, size);
        return;
    }
    struct connection *entry = connections_add(a->o.connections, &peer);
    struct client *c = entry ? keep(a, fd, address, size) : NULL;
    if (!c) {
        if (entry)
            connections_remove(a->o.connections, entry);
        close(fd);
        return;
    }
    c->entry = entry;
    if (!watch(a, &c->here, EPOLLIN))
        drop(a, c, true);
}

static void pause_for(struct acceptor *a, int ms)
{
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->o.listening, NULL);
    a->pause_ms = ms;
}

static void accept_all(struct acceptor *a)
{
    admit_waiting(a); // waiting connections come before new ones
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        if (!connections_room(a->o.connections)) {
            pause_for(a, NO_ROOM_MS);
            return;
        }
        int fd = accept4(a->o.listening, (struct sockaddr *)&address, &size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            accept_one(a, fd, &address, size);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            log_warning("accepting no connections for a moment: %s", strerror(errno));
            pause_for(a, NO_DESCRIPTOR_MS);
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

// Recognises the protocol by the first byte.
static void recognise(struct acceptor *a, struct client *c)
{
    char first;
    if (!peek_first(a, c, &first))
        return;
    if (first >= 'a' && first <= 'z') {
        c->session = a->o.lines->begin(a->o.lines->user);
        if (!c->session) {
            drop(a, c, true);
            return;
        }
        connections_phase(a->o.connections, c->entry, PHASE_TALKING);
    } else {
        drop(a, c, false);
        a->o.give(a->o.user, c->here.fd, (struct sockaddr *)&c->address, c->address_size);
    }
}

static void read_client(struct acceptor *a, struct client *c)
{
    char piece[PIECE_BYTES];
    ssize_t n = recv(c->here.fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        drop(a, c, true);
        return;
    }
    connections_phase(a->o.connections, c->entry, PHASE_TALKING);
    a->o.lines->feed(c->session, (struct str){piece, (size_t)n}, &c->here.out, &c->agent.out);
    if (a->o.lines->is_admitted(c->session))
        connections_prove(a->o.connections, c->entry);
}

// Sends pending bytes. Returns true if everything is sent, or the socket is full.
static bool send_some(struct side *side)
{
    ssize_t n = send(side->fd, side->out.data, side->out.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    memmove(side->out.data, side->out.data + n, side->out.size - (size_t)n);
    side->out.size -= (size_t)n;
    return true;
}

static void lose_agent(struct acceptor *a, struct client *c, bool in_order)
{
    if (c->agent.fd >= 0) {
        watch(a, &c->agent, 0);
        close(c->agent.fd);
    }
    c->agent.fd = -1;
    if (!in_order || c->agent.out.size)
        buf_add_str(&c->here.out, STR("put: the agent does not take points now\n"));
    c->agent.out.size = 0;
}

static void reach_agent(struct acceptor *a, struct client *c)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && agent_connect(fd, a->o.lines->socket) != 0) {
        close(fd);
        fd = -1;
    }
    c->agent.fd = fd;
    if (fd < 0)
        lose_agent(a, c, false);
}

static void hear_agent(struct acceptor *a, struct client *c)
{
    char piece[PIECE_BYTES];
    ssize_t n = recv(c->agent.fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n > 0)
        a->o.lines->answered((struct str){piece, (size_t)n}, &c->agent_line, &c->here.out);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        lose_agent(a, c, n == 0 && c->end_forwarded);
}

// After any event: sends pending data, and updates the watched events.
static void settle(struct acceptor *a, struct client *c)
{
    if (c->agent.out.size && c->agent.fd < 0)
        reach_agent(a, c);
    if (c->agent.out.size && c->agent.fd >= 0 && !send_some(&c->agent))
        lose_agent(a, c, false);
    if (a->o.lines->has_ended(c->session) && c->agent.fd >= 0 && !c->agent.out.size &&
        !c->end_forwarded) {
        shutdown(c->agent.fd, SHUT_WR);
        c->end_forwarded = true;
    }
    bool broken =
        (c->here.out.size && !send_some(&c->here)) || c->here.out.failed || c->agent.out.failed;
    if (broken || (a->o.lines->has_ended(c->session) && c->agent.fd < 0 && !c->here.out.size)) {
        drop(a, c, true);
        return;
    }
    bool room = c->here.out.size < WAITING_BYTES_MAX && c->agent.out.size < WAITING_BYTES_MAX;
    bool good = watch(a, &c->here,
                      (uint32_t)(!a->o.lines->has_ended(c->session) && room ? EPOLLIN : 0) |
                          (uint32_t)(c->here.out.size ? EPOLLOUT : 0));
    if (c->agent.fd >= 0)
        good =
            watch(a, &c->agent, (uint32_t)EPOLLIN | (uint32_t)(c->agent.out.size ? EPOLLOUT : 0)) &&
            good;
    if (!good)
        drop(a, c, true);
}

static void deal_with(struct acceptor *a, struct side *side, uint32_t events)
{
    struct client *c = side->client;
    if (c->dead)
        return;
    if (c->waits) {
        hear_waiting(a, c);
        return;
    }
    if (!c->session) {
        recognise(a, c);
        return;
    }
    if (side == &c->agent && c->agent.fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        hear_agent(a, c);
    if (side == &c->here && events & EPOLLERR)
        drop(a, c, true);
    else if (side == &c->here && events & (EPOLLIN | EPOLLHUP) &&
             !a->o.lines->has_ended(c->session))
        read_client(a, c);
    else if (side == &c->here && events & EPOLLHUP)
        drop(a, c, true); // the client has disconnected
    if (!c->dead)
        settle(a, c);
}

static int timeout_ms(const struct acceptor *a)
{
    return a->pause_ms ? a->pause_ms : a->ready ? PLACE_LOOK_MS : a->waiting ? SILENT_LOOK_MS : -1;
}

static void *run(void *user)
{
    struct acceptor *a = user;
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int n = epoll_wait(a->epoll, events, EVENTS_MAX, timeout_ms(a));
        if (a->pause_ms) {
            struct epoll_event listening = {.events = EPOLLIN, .data.ptr = &a->o.listening};
            if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->o.listening, &listening) == 0)
                a->pause_ms = 0;
        }
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &a->stop)
                return NULL;
            if (events[i].data.ptr == &a->o.listening)
                accept_all(a);
            else
                deal_with(a, events[i].data.ptr, events[i].events);
        }
        admit_waiting(a);
        free_dead(a);
    }
}

int acceptor_create(const struct acceptor_options *options, struct acceptor **out, struct error *e)
{
    struct acceptor *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return error_set(e, -ENOMEM, "no memory for the server");
    a->o = *options;
    list_init(&a->clients);
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->stop = eventfd(0, EFD_CLOEXEC);
    struct epoll_event knock = {.events = EPOLLIN, .data.ptr = &a->o.listening},
                       end = {.events = EPOLLIN, .data.ptr = &a->stop};
    int rc = a->epoll < 0 || a->stop < 0 ||
                     epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->o.listening, &knock) != 0 ||
                     epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->stop, &end) != 0
                 ? -errno
                 : -pthread_create(&a->thread, NULL, run, a);
    if (rc) {
        if (a->epoll >= 0)
            close(a->epoll);
        if (a->stop >= 0)
            close(a->stop);
        free(a);
        return error_set(e, rc, "cannot wait for connections: %s", strerror(-rc));
    }
    *out = a;
    return 0;
}

void acceptor_destroy(struct acceptor *a)
{
    if (!a)
        return;
    uint64_t one = 1;
    ssize_t n;
    do
        n = write(a->stop, &one, sizeof one);
    while (n < 0 && errno == EINTR);
    pthread_join(a->thread, NULL);
    LIST_EACH (link, &a->clients)
        if (!client_of(link)->dead)
            drop(a, client_of(link), true);
    free_dead(a);
    close(a->epoll);
    close(a->stop);
    free(a);
}
