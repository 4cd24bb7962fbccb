// feeds.c - one thread wakes each sleeping stream when its next check is due (stream_look_ms); the
// check runs in the thread that owns its connection. The waking thread also asks the agent for new
// points of programs (wire/drain.h), so that no connection's thread waits for the agent.
#include "faces/native/feeds.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/list.h"
#include "base/log.h"
#include "wire/drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { PIECE_BYTES = 16384 };

// Unsigned in older versions of libmicrohttpd.
static const ssize_t END_OF_STREAM = (ssize_t)MHD_CONTENT_READER_END_OF_STREAM;

struct feed {
    struct feeds *all;
    struct list_link of_all; // in all->feeds
    struct stream *stream;
    struct MHD_Connection *http;
    struct connection *connection;
    struct buf pending;
    size_t sent;    // of pending
    bool asleep;    // protected by the lock
    bool news;      // protected by the lock: has data before its next check is due
    int64_t due_ns; // protected by the lock: CLOCK_MONOTONIC
    bool looked;    // its stream was checked since its last wake-up
};

struct feeds {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t waker;
    struct connections *connections;
    struct drainer *drainer; // NULL: no live file
    struct list_link feeds;  // the newest first
    bool stop;
};

static struct feed *feed_of(struct list_link *link)
{
    return LIST_OF(link, struct feed, of_all);
}

// Returns the time at which the next stream is due. Call it with the lock held.
static int64_t next_due(const struct feeds *f)
{
    int64_t next_ns = INT64_MAX;
    LIST_EACH (link, &f->feeds)
        next_ns = feed_of(link)->due_ns < next_ns ? feed_of(link)->due_ns : next_ns;
    return next_ns;
}

// Wakes the feeds that are due at now_ns. Call it with the lock held.
static void wake_due(struct feeds *f, int64_t now_ns)
{
    LIST_EACH (link, &f->feeds) {
        struct feed *i = feed_of(link);
        if (i->due_ns <= now_ns) {
            int64_t every_ns = stream_look_ms(i->stream) * (int64_t)NS_PER_MS;
            // aligned, so that all feeds with the same interval wake together
            i->due_ns = now_ns == INT64_MAX ? now_ns : (now_ns / every_ns + 1) * every_ns;
            if (i->asleep)
                microhttpd.resume_connection(i->http);
            i->asleep = false;
        }
    }
}

// Called when other nodes have sent data.
static void wake_one(void *user)
{
    struct feed *feed = user;
    pthread_mutex_lock(&feed->all->lock);
    feed->news = true;
    if (feed->asleep)
        microhttpd.resume_connection(feed->http);
    feed->asleep = false;
    pthread_mutex_unlock(&feed->all->lock);
}

static void *wake(void *user)
{
    struct feeds *f = user;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        if (list_empty(&f->feeds)) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        int64_t next_ns = next_due(f);
        if (clock_monotonic_ns() < next_ns) {
            condition_wait_until(&f->changed, &f->lock, next_ns);
            continue;
        }
        pthread_mutex_unlock(&f->lock);
        drainer_wait(f->drainer);
        pthread_mutex_lock(&f->lock);
        wake_due(f, clock_monotonic_ns());
    }
    wake_due(f, INT64_MAX);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

int feeds_create(struct connections *connections, struct drainer *drainer, struct feeds **out,
                 struct error *e)
{
    struct feeds *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return error_set(e, -ENOMEM, "no memory for streams");
    f->connections = connections;
    f->drainer = drainer;
    list_init(&f->feeds);
    pthread_mutex_init(&f->lock, NULL);
    condition_init(&f->changed);
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

// Without new points, nothing is written for a long time; this check finds a client that has hung
// up.
static bool is_gone(const struct feed *feed)
{
    char byte;
    int fd =
        microhttpd.get_connection_info(feed->http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

// Called in the connection's thread whenever the connection is writable.
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
            return END_OF_STREAM;
        if (stream_next(feed->stream, &feed->pending, &e) != 0) {
            log_warning("a stream is closed: %s", e.text);
            return END_OF_STREAM;
        }
        connections_phase(f->connections, feed->connection, PHASE_SENDING); // restarts its timeout
        if (feed->pending.size)
            return take(feed, to, most);
    }
    pthread_mutex_lock(&f->lock);
    bool stop = f->stop;
    if (!stop)
        feed->looked = false;
    if (!stop && !feed->news) {
        feed->asleep = true;
        microhttpd.suspend_connection(feed->http);
    }
    feed->news = false; // data arrived during the check, so check again at once
    pthread_mutex_unlock(&f->lock);
    return stop ? END_OF_STREAM : 0;
}

static void free_feed(void *user)
{
    struct feed *feed = user;
    struct feeds *f = feed->all;
    pthread_mutex_lock(&f->lock);
    list_remove(&feed->of_all);
    feed->asleep = false; // nothing is left to be woken
    pthread_mutex_unlock(&f->lock);
    stream_close(feed->stream);
    buf_free(&feed->pending);
    free(feed);
}

struct MHD_Response *feeds_response(struct feeds *f, struct stream *stream,
                                    struct MHD_Connection *http, struct connection *connection)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed) {
        stream_close(stream);
        return NULL;
    }
    *feed = (struct feed){.all = f, .stream = stream, .http = http, .connection = connection};
    stream_say_nothing(stream, &feed->pending);
    pthread_mutex_lock(&f->lock);
    list_prepend(&f->feeds, &feed->of_all);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    stream_on_news(stream, wake_one, feed);
    struct MHD_Response *response = microhttpd.create_response_from_callback(
        MHD_SIZE_UNKNOWN, PIECE_BYTES, read_feed, feed, free_feed);
    if (!response)
        free_feed(feed);
    return response;
}
