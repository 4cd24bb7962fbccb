// connections.c - a list under one lock, and a thread that looks through it a few times per time-out.
//
// Phases change several times a request, so changing one wakes nobody: the watcher looks at fixed intervals while there are
// connections (a time-out may come 1/8 late), and sleeps while there are none.
#include "aggregator/connections.h"

#include "base/clock.h"
#include "base/condition.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The list is short (hundreds), so it is searched, not indexed.
enum {
    ADDRESS_BYTES = sizeof(struct in6_addr),
    MARGIN = 2, // times as many, with those that are still to be closed
};

struct connection {
    struct connection *next, *previous;
    int64_t since_ns; // when its phase began
    int fd;
    enum connection_phase phase;
    bool shut;                           // told to go; no longer counted
    unsigned char client[ADDRESS_BYTES]; // v4 as ::ffff:a.b.c.d
    bool local;
};

struct connections {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watcher;
    struct connection_options options;
    struct connection *first;
    unsigned held; // how many those are, the shut ones among them
    struct connection_counts counts;
    int64_t look_every_ns;
    bool stop, draining;
};

static bool is_busy(const struct connection *connection)
{
    return connection->phase != PHASE_WAITING && connection->phase != PHASE_TALKING;
}

static void shut(struct connections *c, struct connection *connection)
{
    if (connection->shut)
        return;
    connection->shut = true;
    c->counts.open--;
    shutdown(connection->fd, SHUT_RDWR);
}

static void shut_overdue(struct connections *c, int64_t now_ns)
{
    for (struct connection *i = c->first; i; i = i->next) {
        int64_t timeout_ns = c->options.timeout_ns[i->phase];
        if (i->shut || !timeout_ns || now_ns - i->since_ns < timeout_ns)
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
        if (!c->first) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        int64_t now_ns = clock_monotonic_ns();
        shut_overdue(c, now_ns);
        int64_t next_ns = now_ns + c->look_every_ns;
        // Whatever wakes it, an early look does no harm.
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
    return shortest_ns / LOOKS_PER_TIMEOUT + 1;
}

int connections_create(const struct connection_options *options, struct connections **out, struct error *e)
{
    struct connections *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return error_set(e, -ENOMEM, "no memory for the table of connections");
    c->options = *options;
    c->look_every_ns = look_interval_ns(options);
    pthread_mutex_init(&c->lock, NULL);
    condition_init(&c->changed);
    int rc = pthread_create(&c->watcher, NULL, watch, c);
    if (rc) {
        pthread_cond_destroy(&c->changed);
        pthread_mutex_destroy(&c->lock);
        free(c);
        return error_set(e, -rc, "cannot start the thread that watches connections: %s", strerror(rc));
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
    for (struct connection *i = c->first, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void read_address(unsigned char out[ADDRESS_BYTES], const struct sockaddr *from)
{
    memset(out, 0, ADDRESS_BYTES);
    if (from && from->sa_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, ADDRESS_BYTES);
    } else if (from && from->sa_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, sizeof(struct in_addr));
    }
}

// Over loopback, or between two addresses that are the same.
static bool is_local(int fd, const unsigned char client[ADDRESS_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct sockaddr_storage address = {0};
    struct in6_addr v6;
    socklen_t size = sizeof address;
    unsigned char own[ADDRESS_BYTES];
    memcpy(&v6, client, sizeof v6);
    if (IN6_IS_ADDR_LOOPBACK(&v6) || (memcmp(client, mapped, sizeof mapped) == 0 && client[12] == 127))
        return true;
    if (IN6_IS_ADDR_UNSPECIFIED(&v6) || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    read_address(own, (const struct sockaddr *)&address);
    return memcmp(own, client, ADDRESS_BYTES) == 0;
}

bool connection_is_local(const struct connection *connection)
{
    return connection->local;
}

// Makes room among all connections (client NULL) or among a client's; false when all of them are busy.
static bool evict(struct connections *c, const unsigned char *client)
{
    struct connection *oldest = NULL;
    for (struct connection *i = c->first; i; i = i->next) {
        if (i->shut || is_busy(i) || (client && memcmp(i->client, client, sizeof i->client) != 0))
            continue;
        if (!oldest || i->since_ns < oldest->since_ns)
            oldest = i;
    }
    if (!oldest)
        return false;
    shut(c, oldest);
    c->counts.evicted++;
    return true;
}

static unsigned count_of_client(const struct connections *c, const unsigned char *client)
{
    unsigned n = 0;
    for (const struct connection *i = c->first; i; i = i->next)
        n += !i->shut && memcmp(i->client, client, sizeof i->client) == 0;
    return n;
}

struct connection *connections_add(struct connections *c, int fd, const struct sockaddr *client)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->fd = fd;
    connection->phase = PHASE_WAITING;
    connection->since_ns = clock_monotonic_ns();
    read_address(connection->client, client);
    connection->local = is_local(fd, connection->client);
    pthread_mutex_lock(&c->lock);
    bool room = count_of_client(c, connection->client) < c->options.most_per_client || evict(c, connection->client);
    room = room && (c->counts.open < c->options.most || evict(c, NULL));
    connection->next = c->first;
    if (c->first)
        c->first->previous = connection;
    else
        pthread_cond_broadcast(&c->changed);
    c->first = connection;
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
    if (connection->next)
        connection->next->previous = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        c->first = connection->next;
    c->held--;
    c->counts.open -= !connection->shut;
    c->counts.busy -= is_busy(connection);
    if (c->draining && !c->counts.busy)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    free(connection);
}

void connections_phase(struct connections *c, struct connection *connection, enum connection_phase phase)
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
