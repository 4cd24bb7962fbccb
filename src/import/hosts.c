#include "import/hosts.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/behind.h"
#include "base/map.h"
#include "store/direct.h"
#include "store/import_recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct recording {
    char *path;
    struct store *store;
    uint64_t values, series, events;
    struct point_record *points; // waiting points
    size_t point_count, point_capacity;
};

enum { POINTS_LEAST = 1024 }; // initial capacity of a recording

struct known_series {
    size_t recording;
    uint32_t id;
    bool refused;
};

struct import_hosts {
    struct import_hosts_options options;
    struct arena keys; // keys of both maps
    struct map hosts;  // name → index of the recording
    struct map series; // key → index
    struct recording *recordings;
    size_t recording_count, recording_capacity;
    size_t waiting_capacity; // sum over all recordings
    struct known_series *known;
    size_t known_count, known_capacity;
    struct buf last_key; // saves a lookup, because points mostly come series after series
    size_t last;
    // A full block is written by another thread, while the caller reads the next one. Whoever uses
    // a store holds the lock.
    struct behind behind;
    pthread_mutex_t stores;
    struct written {
        struct import_hosts *hosts;
        size_t recording;
        struct store *store;
        struct point_record *points; // DIRECT_POINTS_MAX; NULL: not needed yet
    } written;
};

int import_hosts_begin(const struct import_hosts_options *o, struct import_hosts **out,
                       struct error *e)
{
    struct import_hosts *h = *out = calloc(1, sizeof *h);
    if (!h)
        return error_set(e, -ENOMEM, "out of memory");
    h->options = *o;
    h->behind = BEHIND_IDLE;
    pthread_mutex_init(&h->stores, NULL);
    return 0;
}

static bool is_file_name(struct str host)
{
    if (!host.size || host.size > STORE_NAME_MAX || host.data[0] == '.')
        return false;
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i] == '/' || !host.data[i])
            return false;
    return true;
}

static int open_recording(struct import_hosts *h, struct str host, struct error *e)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%.*s.sonde", h->options.folder, STR_ARG(host));
    buf_add(&path, "", 1);
    if (path.failed || !array_room(&h->recordings, &h->recording_capacity, h->recording_count + 1,
                                   sizeof *h->recordings)) {
        buf_free(&path);
        return error_set(e, -ENOMEM, "out of memory");
    }
    struct recording r = {.path = path.data};
    int rc = import_recording_create(r.path, host, h->options.job, &r.store, e);
    if (rc)
        buf_free(&path);
    else
        h->recordings[h->recording_count++] = r;
    return rc;
}

// Finds or creates the host's recording. Returns -EINVAL if the host's name cannot be a file's
// name.
static int find_recording(struct import_hosts *h, struct str host, size_t *out, struct error *e)
{
    host = host.size ? host : h->options.host;
    const uint64_t *known = map_get(&h->hosts, host);
    if (known) {
        *out = *known;
        return 0;
    }
    if (!is_file_name(host))
        return -EINVAL;
    if (h->recording_count == IMPORT_HOSTS_MAX)
        return error_set(e, -E2BIG, "more than %d hosts", IMPORT_HOSTS_MAX);
    int rc = open_recording(h, host, e);
    struct str kept = rc ? (struct str){0} : arena_str(&h->keys, host);
    uint64_t *place = kept.data ? map_add(&h->hosts, kept, NULL) : NULL;
    if (rc || !place)
        return rc ? rc : error_set(e, -ENOMEM, "out of memory");
    *place = *out = h->recording_count - 1;
    return 0;
}

static bool refused(int rc)
{
    return rc == -EINVAL || rc == -E2BIG;
}

int import_hosts_metric(struct import_hosts *h, const struct store_metric *metric, struct error *e)
{
    size_t at = 0;
    uint32_t id;
    int rc = find_recording(h, h->options.host, &at, e);
    pthread_mutex_lock(&h->stores);
    if (!rc)
        rc = store_define_metric(h->recordings[at].store, metric, &id);
    pthread_mutex_unlock(&h->stores);
    return rc ? error_set(e, rc, "%s: cannot define the metric %.*s: %s", h->options.folder,
                          STR_ARG(metric->name), strerror(-rc))
              : 0;
}

// Defines the metric; if the store refuses its help text, defines it without, to keep the points.
static int define_metric(const struct import_hosts *h, struct store *store,
                         const struct store_metric *metric, uint32_t *id)
{
    struct store_metric m = *metric, own;
    if (h->options.own_metric && h->options.own_metric(m.name, &own) && own.kind == m.kind) {
        m.unit = m.unit.size ? m.unit : own.unit;
        m.help = m.help.size ? m.help : own.help;
        m.level = own.level;
    }
    int rc = store_define_metric(store, &m, id);
    m.help = (struct str){0};
    return refused(rc) ? store_define_metric(store, &m, id) : rc;
}

static int define(struct import_hosts *h, const struct import_hosts_series *s,
                  struct known_series *out, struct error *e)
{
    struct store_label labels[STORE_LABELS_MAX + 1];
    struct str host = {0};
    size_t count = s->label_count;
    if (count > STORE_LABELS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        labels[i] = s->labels[i];
        if (str_eq(labels[i].key, STR("host")))
            host = labels[i].value;
    }
    if (!host.size)
        labels[count++] = (struct store_label){STR("host"), h->options.host};
    int rc = find_recording(h, host, &out->recording, e);
    if (rc)
        return rc;
    struct recording *r = &h->recordings[out->recording];
    uint32_t metric;
    pthread_mutex_lock(&h->stores);
    rc = define_metric(h, r->store, &s->metric, &metric);
    if (!rc)
        rc = store_define_series(r->store, metric, labels, count, &out->id);
    pthread_mutex_unlock(&h->stores);
    if (refused(rc))
        return -EINVAL;
    r->series += !rc;
    return rc ? error_set(e, rc, "%s: %s", r->path, strerror(-rc)) : 0;
}

static int find_series(struct import_hosts *h, const struct import_hosts_series *s, size_t *out,
                       struct error *e)
{
    if (h->known_count && str_eq(buf_str(&h->last_key), s->key)) {
        *out = h->last;
        return 0;
    }
    uint64_t *place = map_get(&h->series, s->key);
    if (!place) {
        struct str kept = arena_str(&h->keys, s->key);
        place = kept.data ? map_add(&h->series, kept, NULL) : NULL;
        if (!place ||
            !array_room(&h->known, &h->known_capacity, h->known_count + 1, sizeof *h->known))
            return error_set(e, -ENOMEM, "out of memory");
        *place = h->known_count;
        struct known_series *k = &h->known[h->known_count++];
        *k = (struct known_series){0};
        int rc = define(h, s, k, e);
        k->refused = rc == -EINVAL;
        if (rc && !k->refused)
            return rc;
    }
    *out = h->last = *place;
    h->last_key.size = 0;
    buf_add_str(&h->last_key, s->key);
    return h->last_key.failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}

// ---------------------------------------------------------------- waiting points

static int cannot_write(const struct recording *r, int rc, struct error *e)
{
    return rc ? error_set(e, rc, "cannot write %s: %s", r->path, strerror(-rc)) : 0;
}

// Waits for the block that the other thread writes.
static int settle(struct import_hosts *h, struct error *e)
{
    int rc = behind_wait(&h->behind);
    return rc ? cannot_write(&h->recordings[h->written.recording], rc, e) : 0;
}

static int write_block(void *user)
{
    struct written *w = user;
    return direct_points(w->store, w->points, DIRECT_POINTS_MAX, &w->hosts->stores);
}

// Lets the other thread write the recording's full block, and gives the recording the array of the
// block before.
static int append_full(struct import_hosts *h, struct recording *r, struct error *e)
{
    int rc = settle(h, e);
    struct point_record *next =
        h->written.points ? h->written.points : malloc(DIRECT_POINTS_MAX * sizeof *next);
    if (!next)
        return error_set(e, -ENOMEM, "out of memory");
    h->written.points = rc ? next : r->points;
    if (rc)
        return rc;
    h->written.hosts = h;
    h->written.recording = (size_t)(r - h->recordings);
    h->written.store = r->store;
    r->points = next;
    r->point_count = 0;
    behind_begin(&h->behind, write_block, &h->written);
    return 0;
}

static int append_waiting(struct import_hosts *h, struct recording *r, struct error *e)
{
    int rc = settle(h, e);
    if (!rc && r->point_count)
        rc = cannot_write(r, direct_points(r->store, r->points, r->point_count, NULL), e);
    r->point_count = 0;
    return rc;
}

static void free_points(struct import_hosts *h, struct recording *r)
{
    h->waiting_capacity -= r->point_capacity;
    free(r->points);
    r->points = NULL;
    r->point_count = r->point_capacity = 0;
}

// Appends the waiting points of the recording with the largest array, and frees the array.
static int give_up_largest(struct import_hosts *h, struct error *e)
{
    struct recording *largest = h->recordings;
    for (size_t i = 1; i < h->recording_count; i++)
        if (h->recordings[i].point_capacity > largest->point_capacity)
            largest = &h->recordings[i];
    int rc = append_waiting(h, largest, e);
    free_points(h, largest);
    return rc;
}
_Static_assert((int)IMPORT_WAITING_MAX >= 2 * (int)DIRECT_POINTS_MAX, "room for a whole block");

static int points_make_room(struct import_hosts *h, struct recording *r, struct error *e)
{
    size_t capacity = r->point_capacity ? 2 * r->point_capacity : POINTS_LEAST;
    int rc = 0;
    if (r->point_capacity == DIRECT_POINTS_MAX)
        return append_full(h, r, e);
    while (!rc && h->waiting_capacity + capacity - r->point_capacity > IMPORT_WAITING_MAX)
        rc = give_up_largest(h, e);
    if (rc)
        return rc;
    struct point_record *points = realloc(r->points, capacity * sizeof *points);
    if (!points)
        return error_set(e, -ENOMEM, "out of memory");
    h->waiting_capacity += capacity - r->point_capacity;
    r->points = points;
    r->point_capacity = capacity;
    return 0;
}

int import_hosts_append(struct import_hosts *h, size_t number, const int64_t *t_ns,
                        const double *values, size_t count, struct error *e)
{
    const struct known_series *k = &h->known[number];
    if (k->refused)
        return -EINVAL;
    struct recording *r = &h->recordings[k->recording];
    for (size_t i = 0; i < count; i++) {
        if (store_is_missing(values[i]))
            continue;
        if (r->point_count == r->point_capacity) {
            int rc = points_make_room(h, r, e);
            if (rc)
                return rc;
        }
        r->points[r->point_count++] = (struct point_record){k->id, 0, t_ns[i], values[i]};
        r->values++;
    }
    return 0;
}

int import_hosts_series_find(struct import_hosts *h, const struct import_hosts_series *series,
                             size_t *number, struct error *e)
{
    return find_series(h, series, number, e);
}

int import_hosts_point(struct import_hosts *h, const struct import_hosts_series *series,
                       int64_t t_ns, double value, struct error *e)
{
    size_t number = 0;
    int rc = find_series(h, series, &number, e);
    return rc ? rc : import_hosts_append(h, number, &t_ns, &value, 1, e);
}

size_t import_hosts_last(const struct import_hosts *h)
{
    return h->last;
}

// ---------------------------------------------------------------- events

int import_hosts_event(struct import_hosts *h, struct str host, const struct store_event *event,
                       struct error *e)
{
    size_t at = 0;
    int rc = find_recording(h, host, &at, e);
    if (rc)
        return rc;
    struct recording *r = &h->recordings[at];
    pthread_mutex_lock(&h->stores);
    rc = store_append_event(r->store, event);
    pthread_mutex_unlock(&h->stores);
    if (refused(rc))
        return -EINVAL;
    r->events += !rc;
    return rc ? error_set(e, rc, "%s: %s", r->path, strerror(-rc)) : 0;
}

static void free_all(struct import_hosts *h, bool keep)
{
    behind_end(&h->behind);
    pthread_mutex_destroy(&h->stores);
    free(h->written.points);
    for (size_t i = 0; i < h->recording_count; i++) {
        struct recording *r = &h->recordings[i];
        if (r->store)
            store_abandon(r->store);
        if (!keep)
            unlink(r->path);
        free(r->path);
        free(r->points);
    }
    map_free(&h->hosts);
    map_free(&h->series);
    arena_free(&h->keys);
    buf_free(&h->last_key);
    free(h->recordings);
    free(h->known);
    free(h);
}

int import_hosts_end(struct import_hosts *h,
                     void (*made)(const struct import_hosts_recording *r, void *user), void *user,
                     struct error *e)
{
    int rc = 0;
    for (size_t i = 0; i < h->recording_count && !rc; i++) {
        rc = append_waiting(h, &h->recordings[i], e);
        free_points(h, &h->recordings[i]);
    }
    for (size_t i = 0; i < h->recording_count && !rc; i++) {
        struct store *s = h->recordings[i].store;
        h->recordings[i].store = NULL;
        rc = store_close(s, e);
    }
    for (size_t i = 0; i < h->recording_count && !rc; i++) {
        const struct recording *r = &h->recordings[i];
        struct stat st = {0};
        stat(r->path, &st);
        struct import_hosts_recording told = {r->path, r->values, r->series, r->events,
                                              (uint64_t)st.st_size};
        made(&told, user);
    }
    free_all(h, !rc);
    return rc;
}

void import_hosts_cancel(struct import_hosts *h)
{
    if (h)
        free_all(h, false);
}
