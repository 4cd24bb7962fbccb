// snapshot.c - a consistent view of the file at one moment, which lasts until it is closed.
//
// After the snapshot was opened, the writer may have sealed tails and merged blocks, and reused
// their places. Then the snapshot moves to the latest view, but shows only points up to its
// original newest time. (Late points that have arrived meanwhile may become visible.)
#include "store/codec.h"
#include "store/reader.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { SNAPSHOT_TRIES = 10000 };

static int look(struct store_snapshot *s, uint64_t *version, int64_t *newest_ns)
{
    struct store_reader *r = s->reader;
    struct view *v = NULL;
    uint64_t *used = NULL;
    struct view_hold *hold = malloc(sizeof *hold);
    if (!hold)
        return -ENOMEM;
    int rc = -EAGAIN;
    for (int i = 0; i < SNAPSHOT_TRIES && rc == -EAGAIN; i++) {
        if (i % 16 == 15)
            sched_yield();
        rc = view_latest(r, &v, &used, version, newest_ns);
    }
    if (rc) {
        free(hold);
        return rc;
    }
    // only tails have grown, and this snapshot does not show the growth
    if (v == s->view) {
        view_release(v);
        free(used);
        free(hold);
        return 0;
    }
    *hold = (struct view_hold){s->held, v};
    s->held = hold;
    free(s->used);
    s->view = v;
    s->used = used;
    return 0;
}

struct store_snapshot *store_snapshot_open(struct store_reader *r)
{
    struct store_snapshot *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->reader = r;
    s->cache.bytes_max = STORE_KEPT_BYTES;
    pthread_mutex_lock(&r->mutex);
    int rc = look(s, &s->version, &s->newest_ns);
    reader_look_for_cut(r);
    s->metric_count = r->index.metric_count;
    s->series_count = r->index.series_count;
    s->set_count = r->index.set_count;
    s->catalog_bytes = r->index.bytes;
    pthread_mutex_unlock(&r->mutex);
    if (rc) {
        store_snapshot_close(s);
        return NULL;
    }
    return s;
}

struct store_snapshot *store_snapshot_beside(const struct store_snapshot *s)
{
    return store_snapshot_open(s->reader);
}

void store_snapshot_keep_at_most(struct store_snapshot *s, size_t bytes)
{
    s->cache.bytes_max = bytes;
}

void store_snapshot_overflow(struct store_snapshot *s, struct store_overflow *o)
{
    s->cache.overflow = o;
}

int snapshot_move(struct store_snapshot *s)
{
    uint64_t version;
    int64_t newest_ns;
    s->moves++;
    pthread_mutex_lock(&s->reader->mutex);
    int rc = look(s, &version, &newest_ns);
    pthread_mutex_unlock(&s->reader->mutex);
    return rc;
}

void store_snapshot_close(struct store_snapshot *s)
{
    if (!s)
        return;
    cursors_free(s);
    columns_free_cut(s);
    buffers_free(&s->buffers);
    cache_free(&s->cache);
    pthread_mutex_lock(&s->reader->mutex);
    while (s->held) {
        struct view_hold *hold = s->held;
        s->held = hold->next;
        view_release(hold->view);
        free(hold);
    }
    pthread_mutex_unlock(&s->reader->mutex);
    free(s->used);
    buf_free(&s->scratch);
    arena_free(&s->memory);
    free(s);
}

uint64_t store_snapshot_version(const struct store_snapshot *s)
{
    return s->version;
}

int64_t store_newest_ns(const struct store_snapshot *s)
{
    // After a crash of the machine the header may be older than the blocks.
    return s->view->trust == TRUST_SYNCED ? INT64_MAX : s->newest_ns;
}

bool store_time_range(const struct store_snapshot *s, int64_t *first_ns, int64_t *last_ns)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    const struct view *v = s->view;
    for (size_t i = 0; i < v->block_count; i++) {
        const struct block_header *h = &v->blocks[i]->header;
        if (h->kind == BLOCK_EVENTS ||
            __atomic_load_n(&v->blocks[i]->state, __ATOMIC_RELAXED) & BLOCK_DAMAGED)
            continue;
        first = h->first_ns < first ? h->first_ns : first;
        last = h->last_ns > last ? h->last_ns : last;
    }
    for (size_t i = 0; i < v->tail_count; i++) {
        const struct view_tail *t = &v->tails[i];
        bool set = t->kind == EXTENT_SET_TAIL;
        if (t->kind == EXTENT_EVENT_TAIL)
            continue;
        size_t unit = sizeof(struct point_record);
        if (set) {
            pthread_mutex_lock(&s->reader->mutex);
            unit = (s->reader->index.sets[t->owner].count + 1) * sizeof(double);
            pthread_mutex_unlock(&s->reader->mutex);
        }
        for (uint64_t k = 0; k < s->used[i]; k++) {
            int64_t at;
            reader_copy_words(&at, t->bytes + k * unit + (set ? 0 : 8), sizeof at);
            if (tail_standing(t))
                // points of the old tail are neither older than those of the blocks, nor newer than
                // newest_ns
                break;
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
        if (tail_standing(t) == -ESTALE && s->newest_ns > last)
            last = s->newest_ns;
    }
    *first_ns = first;
    *last_ns = last;
    return first <= last;
}
