// connections.c - a list under one lock, and a thread that checks it a few times per timeout.
//
// Phases change several times a request, so a change of phase wakes no thread. The watcher checks
// at fixed intervals while connections exist (so a timeout may be 1/8 late), and sleeps otherwise.
#include "http/connections.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The table is short (hundreds of connections), so a linear search is enough.
enum {
    // the table may hold this multiple of the limit, because closed connections leave it late
    MARGIN = 2,
    KNOWN_CLIENTS = 64, // number of known clients that are remembered without a connection
};

// A silent connection younger than this stays, because its client may be about to send its request.
static const int64_t YOUNG_NS = NS_PER_S;
// If no new connection arrives for this time, the library must have dropped the connections for
// which places are reserved.
static const int64_t RESERVED_NS = 5 * (int64_t)NS_PER_S;

// Allows a burst of connections at once, then one per `interval`. At the time `full_ns`, a complete
// burst is possible again.
struct pace {
    int64_t full_ns;
};

// Exists as long as it has connections; a known client is kept longer.
struct client {
    struct list_link of_all; // in list connections.clients
    struct peer peer;
    bool own;
    // number of connections: all; those not shut; those not shut and unproved
    unsigned held, open, unproved;
    int64_t known_ns; // time of its last proved connection; 0: never
    struct pace pace; // used while the client is unknown
};

struct connection {
    struct list_link of_all; // in list connections.all
    struct client *client;
    struct peer peer;
    int64_t opened_ns, since_ns; // since_ns: start of its phase
    int fd;
    enum connection_phase phase;
    bool shut;   // shut down, and no longer counted
    bool proved; // written by its owner, under the lock
};

struct connections {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watcher;
    struct connection_options options;
    struct list_link all, clients; // newest first
    unsigned unproved_strange;     // number of unproved connections of unknown clients
    // pace of all connections; within it, the clients of connections are not looked up
    struct pace pace;
    unsigned held;       // number of connections, with those that are shut down
    unsigned reserved;   // places of connections that will be added soon
    int64_t reserved_ns; // time of the last reservation
    struct connection_counts counts;
    int64_t look_every_ns;
    bool stop, draining;
};

static bool is_busy(const struct connection *connection)
{
    return connection->phase != PHASE_WAITING && connection->phase != PHASE_TALKING;
}

// ---- clients

static bool is_strange(const struct client *client)
{
    return !client->own && !client->known_ns;
}

// Adds `more` (1 or -1) to the counts of unproved connections, for a connection that is not shut.
static void count_unproved(struct connections *c, struct client *client, int more)
{
    client->unproved += (unsigned)more;
    if (!client->own)
        c->counts.unproved += (unsigned)more;
    if (is_strange(client))
        c->unproved_strange += (unsigned)more;
}

static struct connection *connection_of(struct list_link *link)
{
    return LIST_OF(link, struct connection, of_all);
}

static struct client *client_of(struct list_link *link)
{
    return LIST_OF(link, struct client, of_all);
}

static struct client *look_for_client(struct connections *c, const struct peer *peer)
{
    LIST_EACH (link, &c->clients)
        if (peer_equal(&client_of(link)->peer, peer))
            return client_of(link);
    return NULL;
}

static struct client *find_client(struct connections *c, const struct peer *peer)
{
    struct client *client = look_for_client(c, peer);
    if (client || !(client = calloc(1, sizeof *client)))
        return client;
    client->peer = *peer;
    client->own = peer_is_own(peer);
    list_prepend(&c->clients, &client->of_all);
    return client;
}

static void free_client(struct client *client)
{
    list_remove(&client->of_all);
    free(client);
}

// Called when a client has lost a connection, or got none. Of clients without connections, it keeps
// the most recent known clients, and unknown clients that connect faster than their pace.
static void forget_clients(struct connections *c, struct client *client)
{
    struct client *oldest = NULL;
    unsigned known = 0;
    if (client->held)
        return;
    bool ahead = client->pace.full_ns > clock_monotonic_ns();
    if ((is_strange(client) && !ahead) || client->own) {
        free_client(client);
        return;
    }
    LIST_EACH (link, &c->clients) {
        struct client *i = client_of(link);
        if (i->held)
            continue;
        known++;
        if (!oldest || i->known_ns < oldest->known_ns)
            oldest = i;
    }
    if (known > KNOWN_CLIENTS)
        free_client(oldest);
}

// ---- closing

static void shut(struct connections *c, struct connection *connection)
{
    if (connection->shut)
        return;
    connection->shut = true;
    c->counts.open--;
    connection->client->open--;
    if (!connection->proved)
        count_unproved(c, connection->client, -1);
    shutdown(connection->fd, SHUT_RDWR);
}

static void shut_overdue(struct connections *c, int64_t now_ns)
{
    LIST_EACH (link, &c->all) {
        struct connection *i = connection_of(link);
        int64_t timeout_ns = c->options.timeout_ns[i->phase],
                unproved_ns = c->options.unproved_timeout_ns;
        bool late = timeout_ns && now_ns - i->since_ns >= timeout_ns;
        late |=
            unproved_ns && !i->proved && !i->client->own && now_ns - i->opened_ns >= unproved_ns;
        if (i->shut || !late)
            continue;
        shut(c, i);
        c->counts.timed_out++;
    }
}

static void *watch(void *user)
{
    struct connections *c = user;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (list_empty(&c->all)) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        int64_t now_ns = clock_monotonic_ns();
        shut_overdue(c, now_ns);
        int64_t next_ns = now_ns + c->look_every_ns;
        // Waking up early has no effect but another check.
        condition_wait_until(&c->changed, &c->lock, next_ns);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int64_t look_interval_ns(const struct connection_options *options)
{
    enum { LOOKS_PER_TIMEOUT = 8 };
    int64_t shortest_ns = INT64_C(3600) * NS_PER_S;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (options->timeout_ns[phase] && options->timeout_ns[phase] < shortest_ns)
            shortest_ns = options->timeout_ns[phase];
    if (options->unproved_timeout_ns && options->unproved_timeout_ns < shortest_ns)
        shortest_ns = options->unproved_timeout_ns;
    return shortest_ns / LOOKS_PER_TIMEOUT + 1;
}

int connections_create(const struct connection_options *options, struct connections **out,
                       struct error *e)
{
    struct connections *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return error_set(e, -ENOMEM, "no memory for the table of connections");
    list_init(&c->all);
    list_init(&c->clients);
    c->options = *options;
    c->look_every_ns = look_interval_ns(options);
    pthread_mutex_init(&c->lock, NULL);
    condition_init(&c->changed);
    int rc = pthread_create(&c->watcher, NULL, watch, c);
    if (rc) {
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->lock);
        free(c);
        return error_set(e, -rc, "cannot start the thread that watches connections: %s",
                         strerror(rc));
    }
    *out = c;
    return 0;
}

void connections_destroy(struct connections *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->watcher, NULL);
    LIST_EACH (link, &c->all)
        free(connection_of(link));
    LIST_EACH (link, &c->clients)
        free_client(client_of(link));
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const struct peer *connection_peer(const struct connection *connection)
{
    return &connection->peer;
}

// ---- closing connections to make room

// Compares two connections of a client by the order in which they are closed: unproved connections
// first, the oldest of them first, whatever their phase; then the connection that has been idle
// longest.
static bool goes_before(const struct connection *a, const struct connection *b)
{
    if (!b || a->proved != b->proved)
        return !b || !a->proved;
    return a->proved ? a->since_ns < b->since_ns : a->opened_ns < b->opened_ns;
}

// Finds an idle connection of a client (NULL: of any client). Returns NULL if all are busy.
static struct connection *find_idle(const struct connections *c, const struct client *client,
                                    bool unproved_only)
{
    struct connection *first = NULL;
    LIST_EACH (link, &c->all) {
        struct connection *i = connection_of(link);
        if (i->shut || i->phase == PHASE_ANSWERING ||
            (i->proved && (is_busy(i) || unproved_only)) || (client && i->client != client))
            continue;
        if (goes_before(i, first))
            first = i;
    }
    return first;
}

// Closes a connection to make room. Returns false if all are busy.
static bool evict(struct connections *c, const struct client *client, bool unproved_only)
{
    struct connection *first = find_idle(c, client, unproved_only);
    if (!first)
        return false;
    shut(c, first);
    c->counts.evicted++;
    return true;
}

// Returns the client with the most unproved connections; our own user comes last. NULL: no client
// has any.
static const struct client *find_crowd(const struct connections *c, bool strange_only)
{
    const struct client *crowd = NULL;
    LIST_EACH (link, &c->clients) {
        const struct client *i = client_of(link);
        if (!i->unproved || (strange_only && !is_strange(i)))
            continue;
        if (!crowd || (crowd->own && !i->own) ||
            (crowd->own == i->own && i->unproved > crowd->unproved))
            crowd = i;
    }
    return crowd;
}

static bool make_room(struct connections *c, const struct client *client)
{
    const struct connection_options *o = &c->options;
    if (is_strange(client)) {
        if (o->most_unproved_per_client && client->unproved >= o->most_unproved_per_client)
            evict(c, client, true);
        const struct client *crowd = o->most_unproved && c->unproved_strange >= o->most_unproved
                                         ? find_crowd(c, true)
                                         : NULL;
        if (crowd)
            evict(c, crowd, true);
    }
    if (client->open >= o->most_per_client && !evict(c, client, false))
        return false;
    if (c->counts.open < o->most)
        return true;
    const struct client *crowd = find_crowd(c, false);
    return (crowd && evict(c, crowd, true)) || evict(c, NULL, false);
}

// ---- waiting for a place

// True if closing the connection cannot lose a request.
static bool is_harmless(const struct connection *connection, int64_t now_ns)
{
    char byte;
    int64_t since_ns = connection->proved ? connection->since_ns : connection->opened_ns;
    if (is_strange(connection->client))
        return true;
    return now_ns - since_ns >= YOUNG_NS &&
           recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

// True if the table is full for this client. The clients of reserved places are unknown, so all of
// these places may be this client's.
static bool is_full(struct connections *c, const struct client *client)
{
    if (clock_monotonic_ns() - c->reserved_ns >= RESERVED_NS)
        c->reserved = 0;
    return (client ? client->open : 0) + c->reserved >= c->options.most_per_client ||
           c->counts.open + c->reserved >= c->options.most;
}

// Returns the connection that make_room would close, or NULL if it would close none.
static struct connection *find_next(const struct connections *c, const struct client *client)
{
    if (client && client->open >= c->options.most_per_client)
        return find_idle(c, client, false);
    if (c->counts.open < c->options.most)
        return NULL;
    const struct client *crowd = find_crowd(c, false);
    struct connection *next = crowd ? find_idle(c, crowd, true) : NULL;
    return next ? next : find_idle(c, NULL, false);
}

static bool may_wait(const struct peer *peer, const struct client *client)
{
    return peer_is_own(peer) || (client && client->known_ns);
}

bool connections_should_wait(struct connections *c, struct peer_lookup *lookup)
{
    pthread_mutex_lock(&c->lock);
    unsigned least =
        c->options.most < c->options.most_per_client ? c->options.most : c->options.most_per_client;
    // there is room for any client, so do not look the client up
    bool room = c->counts.open + c->reserved < least;
    pthread_mutex_unlock(&c->lock);
    if (room)
        return false;
    const struct peer *peer = peer_lookup_get(lookup);
    pthread_mutex_lock(&c->lock);
    const struct client *known = look_for_client(c, peer);
    bool wait = may_wait(peer, known) && is_full(c, known);
    pthread_mutex_unlock(&c->lock);
    return wait;
}

bool connections_take_place(struct connections *c, const struct peer *peer)
{
    pthread_mutex_lock(&c->lock);
    const struct client *client = look_for_client(c, peer);
    bool place = !may_wait(peer, client) || !is_full(c, client);
    struct connection *next = place ? NULL : find_next(c, client);
    if (next && is_harmless(next, clock_monotonic_ns())) {
        shut(c, next);
        c->counts.evicted++;
        place = true;
    }
    pthread_mutex_unlock(&c->lock);
    return place;
}

void connections_reserve(struct connections *c)
{
    pthread_mutex_lock(&c->lock);
    c->reserved++;
    c->reserved_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&c->lock);
}

void connections_release(struct connections *c)
{
    pthread_mutex_lock(&c->lock);
    c->reserved -= c->reserved > 0;
    pthread_mutex_unlock(&c->lock);
}

void connections_wait(struct connections *c)
{
    pthread_mutex_lock(&c->lock);
    c->counts.waiting++;
    c->counts.accepted++;
    pthread_mutex_unlock(&c->lock);
}

void connections_wait_ended(struct connections *c, enum wait_end how)
{
    pthread_mutex_lock(&c->lock);
    c->counts.waiting--;
    c->counts.accepted -= how == WAIT_ADMITTED; // connections_add counts it
    c->counts.evicted += how == WAIT_EVICTED;
    c->counts.timed_out += how == WAIT_TIMED_OUT;
    pthread_mutex_unlock(&c->lock);
}

bool connections_should_close(struct connections *c)
{
    pthread_mutex_lock(&c->lock);
    bool waiting = c->counts.waiting > 0;
    pthread_mutex_unlock(&c->lock);
    return waiting;
}

// ---- pace of new connections

static bool step(const struct connection_options *o, struct pace *pace, int64_t now_ns)
{
    int64_t interval_ns = NS_PER_S / o->strange_a_second;
    int64_t full_ns = (pace->full_ns > now_ns ? pace->full_ns : now_ns) + interval_ns;
    if (full_ns - now_ns > interval_ns * o->strange_burst)
        return false;
    pace->full_ns = full_ns;
    return true;
}

bool connections_in_pace(struct connections *c, struct peer_lookup *lookup)
{
    if (!c->options.strange_a_second)
        return true;
    pthread_mutex_lock(&c->lock);
    bool in_pace = step(&c->options, &c->pace, clock_monotonic_ns());
    pthread_mutex_unlock(&c->lock);
    if (in_pace)
        return true;
    const struct peer *peer = peer_lookup_get(lookup);
    if (peer_is_own(peer))
        return true;
    pthread_mutex_lock(&c->lock);
    struct client *client = find_client(c, peer);
    in_pace =
        client && (!is_strange(client) || step(&c->options, &client->pace, clock_monotonic_ns()));
    c->counts.refused += !in_pace;
    if (client)
        forget_clients(c, client);
    pthread_mutex_unlock(&c->lock);
    return in_pace;
}

struct connection *connections_add(struct connections *c, struct peer_lookup *lookup)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->fd = lookup->fd;
    connection->phase = PHASE_WAITING;
    connection->opened_ns = connection->since_ns = clock_monotonic_ns();
    connection->peer = *peer_lookup_get(lookup);
    pthread_mutex_lock(&c->lock);
    connection->client = find_client(c, &connection->peer);
    if (!connection->client) {
        pthread_mutex_unlock(&c->lock);
        free(connection);
        return NULL;
    }
    bool room = make_room(c, connection->client);
    connection->client->held++;
    connection->client->open++;
    count_unproved(c, connection->client, 1);
    if (list_empty(&c->all))
        pthread_cond_broadcast(&c->changed);
    list_prepend(&c->all, &connection->of_all);
    c->held++;
    c->counts.open++;
    c->counts.accepted++;
    if (!room) {
        shut(c, connection);
        c->counts.refused++;
    }
    pthread_mutex_unlock(&c->lock);
    return connection;
}

bool connections_room(struct connections *c)
{
    pthread_mutex_lock(&c->lock);
    bool room = c->held / MARGIN < c->options.most;
    pthread_mutex_unlock(&c->lock);
    return room;
}

void connections_remove(struct connections *c, struct connection *connection)
{
    pthread_mutex_lock(&c->lock);
    list_remove(&connection->of_all);
    struct client *client = connection->client;
    c->held--;
    client->held--;
    if (!connection->shut) {
        c->counts.open--;
        client->open--;
        if (!connection->proved)
            count_unproved(c, client, -1);
    }
    c->counts.busy -= is_busy(connection);
    if (c->draining && !c->counts.busy)
        pthread_cond_broadcast(&c->changed);
    forget_clients(c, client);
    pthread_mutex_unlock(&c->lock);
    free(connection);
}

void connections_prove(struct connections *c, struct connection *connection)
{
    if (connection->proved) // no lock is needed, because only its owner writes it
        return;
    pthread_mutex_lock(&c->lock);
    struct client *client = connection->client;
    if (!connection->shut)
        count_unproved(c, client, -1);
    connection->proved = true;
    if (is_strange(client)) // its other connections no longer count as those of an unknown client
        c->unproved_strange -= client->unproved;
    client->known_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&c->lock);
}

void connections_phase(struct connections *c, struct connection *connection,
                       enum connection_phase phase)
{
    pthread_mutex_lock(&c->lock);
    c->counts.busy -= is_busy(connection);
    connection->phase = phase;
    connection->since_ns = clock_monotonic_ns();
    c->counts.busy += is_busy(connection);
    if (c->draining && !c->counts.busy)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void connections_drain(struct connections *c, int64_t most_ns)
{
    int64_t until_ns = clock_monotonic_ns() + most_ns;
    pthread_mutex_lock(&c->lock);
    c->draining = true;
    while (c->counts.busy && condition_wait_until(&c->changed, &c->lock, until_ns))
        continue;
    pthread_mutex_unlock(&c->lock);
}

void connections_counts(struct connections *c, struct connection_counts *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->counts;
    pthread_mutex_unlock(&c->lock);
}
