// feeds.c - one thread wakes all sleeping streams every STREAM_LOOK_MS; each looks for news in the thread that owns its connection.
#include "aggregator/feeds.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { PIECE_BYTES = 16384 };

struct feed {
    struct feeds *all;
    struct feed *next, *previous; // in all->first
    struct stream *stream;
    struct MHD_Connection *http;
    struct connection *connection;
    struct buf pending;
    size_t sent; // of pending
    bool asleep; // under the lock
    bool looked; // since it was woken
};

struct feeds {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t waker;
    struct connections *connections;
    struct feed *first;
    bool stop;
};

static void wake_all(struct feeds *f)
{
    for (struct feed *i = f->first; i; i = i->next) {
        if (!i->asleep)
            continue;
        i->asleep = false;
        MHD_resume_connection(i->http);
    }
}

static void *wake(void *user)
{
    struct feeds *f = user;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        if (!f->first) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        int64_t next_ns = clock_monotonic_ns() + (int64_t)STREAM_LOOK_MS * NS_PER_MS;
        struct timespec until = {.tv_sec = next_ns / NS_PER_S, .tv_nsec = next_ns % NS_PER_S};
        while (!f->stop && pthread_cond_timedwait(&f->changed, &f->lock, &until) == 0)
            continue;
        wake_all(f);
    }
    wake_all(f);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

int feeds_create(struct connections *connections, struct feeds **out, struct error *e)
{
    struct feeds *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return error_set(e, -ENOMEM, "no memory for streams");
    f->connections = connections;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = pthread_create(&f->waker, NULL, wake, f);
    if (rc) {
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->lock);
        free(f);
        return error_set(e, -rc, "cannot start the thread for streams: %s", strerror(rc));
    }
    *out = f;
    return 0;
}

void feeds_stop(struct feeds *f)
{
    pthread_mutex_lock(&f->lock);
    bool running = !f->stop;
    f->stop = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (running)
        pthread_join(f->waker, NULL);
}

void feeds_destroy(struct feeds *f)
{
    if (!f)
        return;
    feeds_stop(f);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static ssize_t take(struct feed *feed, char *to, size_t most)
{
    size_t left = feed->pending.size - feed->sent, size = left < most ? left : most;
    memcpy(to, feed->pending.data + feed->sent, size);
    feed->sent += size;
    if (feed->sent == feed->pending.size)
        feed->pending.size = feed->sent = 0;
    return (ssize_t)size;
}

// A client that has hung up is not written to for a long time when there is no news: it is looked for.
static bool is_gone(const struct feed *feed)
{
    char byte;
    int fd = MHD_get_connection_info(feed->http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

// Called in the thread of the connection whenever it can be written to.
static ssize_t read_feed(void *user, uint64_t position, char *to, size_t most)
{
    (void)position;
    struct feed *feed = user;
    struct feeds *f = feed->all;
    struct error e = {0};
    if (feed->pending.size)
        return take(feed, to, most);
    if (!feed->looked) {
        feed->looked = true;
        if (is_gone(feed))
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (stream_next(feed->stream, &feed->pending, &e) != 0) {
            log_warning("a stream is closed: %s", e.text);
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        connections_phase(f->connections, feed->connection, PHASE_SENDING); // its time begins anew
        if (feed->pending.size)
            return take(feed, to, most);
    }
    pthread_mutex_lock(&f->lock);
    bool stop = f->stop;
    if (!stop) {
        feed->asleep = true;
        feed->looked = false;
        MHD_suspend_connection(feed->http);
    }
    pthread_mutex_unlock(&f->lock);
    return stop ? MHD_CONTENT_READER_END_OF_STREAM : 0;
}

static void free_feed(void *user)
{
    struct feed *feed = user;
    struct feeds *f = feed->all;
    pthread_mutex_lock(&f->lock);
    if (feed->next)
        feed->next->previous = feed->previous;
    if (feed->previous)
        feed->previous->next = feed->next;
    else
        f->first = feed->next;
    pthread_mutex_unlock(&f->lock);
    stream_close(feed->stream);
    buf_free(&feed->pending);
    free(feed);
}

struct MHD_Response *feeds_response(struct feeds *f, struct stream *stream, struct MHD_Connection *http,
                                    struct connection *connection)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed) {
        stream_close(stream);
        return NULL;
    }
    *feed = (struct feed){.all = f, .stream = stream, .http = http, .connection = connection};
    // A first word, so that a client knows at once that it is heard.
    buf_add_str(&feed->pending, STR(": sonde\n\n"));
    pthread_mutex_lock(&f->lock);
    feed->next = f->first;
    if (f->first)
        f->first->previous = feed;
    f->first = feed;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, read_feed, feed, free_feed);
    if (!response)
        free_feed(feed);
    return response;
}
