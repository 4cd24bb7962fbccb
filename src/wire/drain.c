#include "wire/drain.h"

#include "base/agent_address.h"
#include "base/clock.h"
#include "base/condition.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

bool drain_reaches(int64_t until_ns)
{
    return until_ns >= clock_realtime_ns() - DRAIN_PAST_MS * (int64_t)NS_PER_MS;
}

bool drain_find_socket(const char *recording, char out[DRAIN_SOCKET_MAX])
{
    struct stat st;
    const char *slash = strrchr(recording, '/');
    bool folder = stat(recording, &st) == 0 && S_ISDIR(st.st_mode);
    int n = folder ? snprintf(out, DRAIN_SOCKET_MAX, "%s/agent.sock", recording)
                   : snprintf(out, DRAIN_SOCKET_MAX, "%.*sagent.sock",
                              slash ? (int)(slash + 1 - recording) : 0, recording);
    return n > 0 && n < DRAIN_SOCKET_MAX && stat(out, &st) == 0 && S_ISSOCK(st.st_mode);
}

// ---- one connection ----

struct drain_line {
    char *socket_path; // owned
    unsigned flags;
    int fd;      // -1 = not connected
    pid_t owner; // the process that connected; a forked child must not read its responses
    uint64_t requested, answered;
    char part[sizeof(uint64_t)]; // received bytes of an incomplete response
    size_t part_size;
};

int drain_line_create(const char *socket_path, unsigned flags, struct drain_line **out)
{
    *out = NULL;
    struct drain_line *l = calloc(1, sizeof *l);
    if (!l || !(l->socket_path = strdup(socket_path))) {
        free(l);
        return -ENOMEM;
    }
    l->flags = flags;
    l->fd = -1;
    *out = l;
    return 0;
}

static void disconnect(struct drain_line *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->answered = l->requested;
    l->part_size = 0;
}

void drain_line_destroy(struct drain_line *l)
{
    if (!l)
        return;
    disconnect(l);
    free(l->socket_path);
    free(l);
}

// Connects without waiting: if the agent's backlog is full, the agent has stalled.
static int connect_line(struct drain_line *l)
{
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failed = l->fd < 0 ? errno : agent_connect(l->fd, l->socket_path);
    if (!failed) {
        l->owner = getpid();
        return 0;
    }
    disconnect(l);
    return failed == EAGAIN ? -ETIMEDOUT : -failed;
}

static int send_request(struct drain_line *l)
{
    struct drain_request request = {DRAIN_MAGIC, l->flags, l->requested + 1};
    ssize_t sent;
    do
        sent = send(l->fd, &request, sizeof request, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)sizeof request)
        return sent < 0 ? -errno : -EPIPE;
    l->requested = request.number;
    return 0;
}

// Reads the responses that have arrived. Returns 0, -EPIPE if the agent has gone, or another
// negative errno.
static int receive(struct drain_line *l)
{
    for (;;) {
        ssize_t n = recv(l->fd, l->part + l->part_size, sizeof l->part - l->part_size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            return -EPIPE;
        l->part_size += (size_t)n;
        if (l->part_size < sizeof l->part)
            continue;
        memcpy(&l->answered, l->part, sizeof l->answered);
        l->part_size = 0;
        if (l->answered == l->requested)
            return 0;
    }
}

static int wait_for_answer(struct drain_line *l, int64_t deadline_ns)
{
    int rc = 0;
    while (rc == 0 && l->answered != l->requested) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        struct pollfd f = {.fd = l->fd, .events = POLLIN};
        int n = left_ns > 0 ? poll(&f, 1, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS)) : 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (n > 0)
            rc = receive(l);
    }
    return rc;
}

int drain_line_ask(struct drain_line *l)
{
    // the agent may have been restarted since the last request, and again during this one
    enum { TRIES = 3 };
    int64_t deadline_ns = clock_monotonic_ns() + DRAIN_WAIT_MS * (int64_t)NS_PER_MS;
    if (l->fd >= 0 && l->owner != getpid())
        disconnect(l);
    if (l->fd >= 0 && l->answered != l->requested) {
        if (receive(l) != 0)
            disconnect(l);
        else if (l->answered != l->requested)
            return -ETIMEDOUT;
    }
    int rc = 0;
    for (int i = 0; i < TRIES; i++) {
        rc = l->fd < 0 ? connect_line(l) : 0;
        if (rc)
            return rc;
        rc = send_request(l);
        if (rc == 0)
            rc = wait_for_answer(l, deadline_ns);
        if (rc == 0 || rc == -ETIMEDOUT)
            return rc;
        disconnect(l);
    }
    return rc;
}

// ---- for all threads of a process ----

struct drainer {
    // protects all members below except `line`, which belongs to the thread that has set `busy`
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct drain_line *line;
    bool busy;
    uint64_t begun, done; // numbers of requests
    int result;           // result of the last request
    struct drainer_stats stats;
};

int drainer_create(const char *socket_path, unsigned flags, struct drainer **out, struct error *e)
{
    struct drainer *d = *out = calloc(1, sizeof *d);
    if (!d)
        return error_set(e, -ENOMEM, "no memory for requests to the agent");
    int rc = drain_line_create(socket_path, flags, &d->line);
    if (rc) {
        free(d);
        *out = NULL;
        return error_set(e, rc, "cannot reach an agent at %s: %s", socket_path, strerror(-rc));
    }
    pthread_mutex_init(&d->lock, NULL);
    condition_init(&d->ended);
    return 0;
}

void drainer_destroy(struct drainer *d)
{
    if (!d)
        return;
    drain_line_destroy(d->line);
    pthread_cond_destroy(&d->ended);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

int drainer_wait(struct drainer *d)
{
    if (!d)
        return 0;
    pthread_mutex_lock(&d->lock);
    d->stats.waiting++;
    // the request in progress may have read our ring before our last point
    uint64_t needed = d->begun + 1;
    while (d->done < needed) {
        if (d->busy) {
            pthread_cond_wait(&d->ended, &d->lock);
            continue;
        }
        d->busy = true;
        d->begun++;
        d->stats.requests++;
        pthread_mutex_unlock(&d->lock);
        int result = drain_line_ask(d->line);
        pthread_mutex_lock(&d->lock);
        d->busy = false;
        d->result = result;
        d->done = d->begun;
        pthread_cond_broadcast(&d->ended);
    }
    int rc = d->result;
    d->stats.waiting--;
    d->stats.questions++;
    d->stats.late += rc != 0;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

void drainer_get_stats(struct drainer *d, struct drainer_stats *out)
{
    pthread_mutex_lock(&d->lock);
    *out = d->stats;
    pthread_mutex_unlock(&d->lock);
}
