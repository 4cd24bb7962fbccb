#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 64, PIECE = 65536, LOOK_MS = 5 };

struct proxy {
    int listening, port, target;
    pthread_t thread;
    atomic_bool stop, stalled, cut;
    atomic_int slice;
    atomic_uint_fast64_t flip;
    int pairs[PAIRS_MAX][2]; // link's side, hub's side; -1: unused
    uint64_t passed[PAIRS_MAX];
    char piece[PIECE];
};

static void close_pair(struct proxy *p, int i)
{
    close(p->pairs[i][0]);
    close(p->pairs[i][1]);
    p->pairs[i][0] = p->pairs[i][1] = -1;
}

static void send_all(int fd, const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, (size_t)size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        data += n;
        size -= n;
    }
}

static void pass(struct proxy *p, int i, int from)
{
    char *piece = p->piece;
    int slice = atomic_load(&p->slice);
    ssize_t n = recv(p->pairs[i][from], piece, slice ? (size_t)slice : PIECE, 0);
    if (n <= 0) {
        close_pair(p, i);
        return;
    }
    uint64_t flip = atomic_load(&p->flip);
    if (from == 0 && flip && flip > p->passed[i] && flip <= p->passed[i] + (uint64_t)n)
        piece[flip - p->passed[i] - 1] ^= 1;
    if (from == 0)
        p->passed[i] += (uint64_t)n;
    send_all(p->pairs[i][1 - from], piece, n);
}

static void take_one(struct proxy *p)
{
    int i = 0, link = accept(p->listening, NULL, NULL);
    while (i < PAIRS_MAX && p->pairs[i][0] >= 0)
        i++;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)p->target),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int hub = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (i == PAIRS_MAX || connect(hub, (struct sockaddr *)&to, sizeof to) != 0) {
        close(link);
        close(hub);
        return;
    }
    int now = 1; // otherwise single bytes would wait for acknowledgements
    setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    setsockopt(hub, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
    p->pairs[i][0] = link;
    p->pairs[i][1] = hub;
    p->passed[i] = 0;
}

static void *run(void *user)
{
    struct proxy *p = user;
    while (!atomic_load(&p->stop)) {
        struct pollfd fds[1 + 2 * PAIRS_MAX];
        int who[2 * PAIRS_MAX][2], n = 0;
        fds[0] = (struct pollfd){p->listening, POLLIN, 0};
        if (atomic_exchange(&p->cut, false))
            for (int i = 0; i < PAIRS_MAX; i++)
                if (p->pairs[i][0] >= 0)
                    close_pair(p, i);
        for (int i = 0; i < PAIRS_MAX && !atomic_load(&p->stalled); i++)
            for (int side = 0; side < 2 && p->pairs[i][0] >= 0; side++) {
                who[n][0] = i;
                who[n][1] = side;
                fds[1 + n++] = (struct pollfd){p->pairs[i][side], POLLIN, 0};
            }
        poll(fds, (nfds_t)(1 + n), LOOK_MS);
        for (int k = 0; k < n; k++)
            if (fds[1 + k].revents && p->pairs[who[k][0]][0] >= 0)
                pass(p, who[k][0], who[k][1]);
        if (fds[0].revents)
            take_one(p);
    }
    return NULL;
}

struct proxy *proxy_start(int port)
{
    struct proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    p->target = port;
    for (int i = 0; i < PAIRS_MAX; i++)
        p->pairs[i][0] = p->pairs[i][1] = -1;
    p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(p->listening, (struct sockaddr *)&at, sizeof at) || listen(p->listening, 64) ||
        getsockname(p->listening, (struct sockaddr *)&at, &size))
        abort();
    p->port = ntohs(at.sin_port);
    pthread_create(&p->thread, NULL, run, p);
    return p;
}

int proxy_port(const struct proxy *p)
{
    return p->port;
}

void proxy_stop(struct proxy *p)
{
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (p->pairs[i][0] >= 0)
            close_pair(p, i);
    close(p->listening);
    free(p);
}

void proxy_stall(struct proxy *p, bool stalled)
{
    atomic_store(&p->stalled, stalled);
}

void proxy_cut(struct proxy *p)
{
    atomic_store(&p->cut, true);
}

void proxy_slice(struct proxy *p, int bytes)
{
    atomic_store(&p->slice, bytes);
}

void proxy_flip(struct proxy *p, uint64_t at)
{
    atomic_store(&p->flip, at);
}
