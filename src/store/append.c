// append.c - appends rows, points and events to their tails.
//
// An append is a copy and two stores: the tail's `used`, which makes the data visible and safe from
// a kill of the process, and the file's version. An append that finds the tail full seals it first.
#include "base/log.h"
#include "store/event_record.h"
#include "store/writer.h"

#include <assert.h>
#include <errno.h>

// Copies words that other threads and processes may be reading at the same time.
void append_words(uint8_t *to, const void *from, size_t words)
{
    uint64_t *at = (uint64_t *)(void *)to;
    for (size_t i = 0; i < words; i++) {
        uint64_t w;
        memcpy(&w, (const char *)from + 8 * i, 8);
        __atomic_store_n(&at[i], w, __ATOMIC_RELAXED);
    }
}

// Appends a record to the tail of points. Each word is stored once: a record that is built in
// memory and then read in larger pieces waits for these stores, 5 ns.
static inline void put_point(uint8_t *to, uint32_t series, int64_t t_ns, double value)
{
    uint64_t *at = (uint64_t *)(void *)to, bits;
    memcpy(&bits, &value, sizeof bits);
    __atomic_store_n(&at[0], series, __ATOMIC_RELAXED);
    __atomic_store_n(&at[1], (uint64_t)t_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&at[2], bits, __ATOMIC_RELAXED);
}

static void publish(struct store *s, struct tail *tail, uint32_t used, int64_t t_ns)
{
    struct superblock *sb = extents_super(&s->file);
    store_io_step(s->io, "append");
    if (t_ns > s->newest_ns) {
        s->newest_ns = t_ns;
        __atomic_store_n(&sb->newest_ns, t_ns, __ATOMIC_RELAXED);
    }
    tail->used = used;
    extent_publish(extent_entry(&s->file, tail->slot), used);
    // Release: a reader that reads the new version also reads the new `used`.
    __atomic_store_n(&sb->version, sb->version + 1, __ATOMIC_RELEASE);
}

static bool too_old(const struct store *s, int64_t t_ns)
{
    return t_ns < retain_window_start(s);
}

int append_space_failed(struct store *s, int rc)
{
    s->stats.space_errors++;
    if (!s->reported.space)
        log_warning(
            "%s: no space for more data (%s); up to %zu MiB are kept in memory until there is",
            s->path, strerror(-rc), s->limits.memory_bytes / 2 >> 20);
    s->reported.space = true;
    return rc;
}

static int tail_allocate(struct store *s, struct tail *tail, enum extent_kind kind, uint32_t owner,
                         uint32_t room, uint64_t unit_bytes)
{
    assert(tail->slot == EXTENT_NO_SLOT && room);
    int slot = extent_allocate(&s->file, kind, owner, tail->sequence, room * unit_bytes);
    if (slot < 0)
        return append_space_failed(s, slot);
    tail->slot = slot;
    tail->used = tail->checked = tail->crc = tail->idle = 0;
    tail->room = room;
    tail->offset = extent_entry(&s->file, slot)->offset;
    s->tails.bytes += extent_entry(&s->file, slot)->size;
    s->tails.set_count += kind == EXTENT_SET_TAIL;
    return 0;
}

// ---- Rows ----

uint64_t append_tail_limit(const struct store *s)
{
    uint64_t limit = s->limits.memory_bytes / 2;
    return limit > s->limits.size_bytes / 4 ? s->limits.size_bytes / 4 : limit;
}

// Returns the number of rows for a new tail, as many as memory allows. The tail takes at most an
// eighth of the remaining memory, or an even share of all memory.
static uint32_t rows_of_tail(const struct store *s, uint64_t row_bytes)
{
    uint64_t limit = append_tail_limit(s), rows_max = TAIL_VALUES_MAX * sizeof(double) / row_bytes;
    uint64_t left = limit > s->tails.bytes ? (limit - s->tails.bytes) / 8 : 0,
             even = limit / (s->tails.set_count + 1);
    uint64_t rows = left / row_bytes;
    rows = rows > TAIL_ROWS_MIN ? rows : TAIL_ROWS_MIN;
    rows = rows > even / row_bytes ? even / row_bytes : rows;
    rows_max = rows_max > TAIL_ROWS_MAX   ? TAIL_ROWS_MAX
               : rows_max > TAIL_ROWS_MIN ? rows_max
                                          : TAIL_ROWS_MIN;
    return rows > rows_max ? (uint32_t)rows_max : rows ? (uint32_t)rows : 1;
}

// Seals tails of sets in turn until a new tail of `bytes` fits within the limit. Skips tails that
// are smaller than the average.
static int make_memory(struct store *s, uint64_t bytes)
{
    uint64_t limit = append_tail_limit(s);
    for (uint32_t looked = 0;
         s->tails.set_count && s->tails.bytes + bytes > limit && looked < 2 * s->stats.sets;
         looked++) {
        uint32_t id = s->tails.memory_hand = (s->tails.memory_hand + 1) % (uint32_t)s->stats.sets;
        const struct tail *t = &s->catalog.sets[id].tail;
        if (t->slot == EXTENT_NO_SLOT ||
            extent_entry(&s->file, t->slot)->size * s->tails.set_count < s->tails.bytes / 2)
            continue;
        int rc = seal_and_free(s, id);
        if (rc)
            return rc;
    }
    return 0;
}

static int set_make_room(struct store *s, uint32_t id)
{
    struct set *set = &s->catalog.sets[id];
    int rc = set->tail.slot == EXTENT_NO_SLOT ? 0 : seal_set(s, id);
    if (rc || set->tail.slot != EXTENT_NO_SLOT)
        return rc;
    uint64_t row_bytes = (set->count + 1) * UINT64_C(8);
    uint32_t rows = rows_of_tail(s, row_bytes);
    rc = make_memory(s, rows * row_bytes);
    return rc ? rc : tail_allocate(s, &set->tail, EXTENT_SET_TAIL, id, rows, row_bytes);
}

int append_row(struct store *s, uint32_t id, int64_t t_ns, const double *values)
{
    struct set *set = &s->catalog.sets[id];
    if (set->shared || set->shared_seen != s->shared.count || t_ns <= s->shared.singles_before_ns) {
        int rc = shared_row(s, id, t_ns, values);
        if (rc)
            return rc;
    }
    if (set->tail.used == set->tail.room) {
        int rc = set_make_room(s, id);
        if (rc)
            return rc;
    }
    uint8_t *row =
        s->file.base + set->tail.offset + set->tail.used * (set->count + 1) * UINT64_C(8);
    append_words(row, &t_ns, 1);
    append_words(row + 8, values, set->count);
    publish(s, &set->tail, set->tail.used + 1, t_ns);
    return 0;
}

int store_append_row(struct store *s, uint32_t id, int64_t t_ns, const double *values)
{
    if (id >= s->stats.sets) {
        s->stats.refused_invalid++;
        return -EINVAL;
    }
    uint32_t count = s->catalog.sets[id].count;
    if (too_old(s, t_ns)) {
        s->stats.refused_old += count;
        return -ERANGE;
    }
    int rc = writer_is_cut(s)  ? -ESTALE
             : spill_in_use(s) ? -ENOSPC
                               : append_row(s, id, t_ns, values);
    if (writer_space_error(rc))
        rc = spill_row(s, id, t_ns, values);
    if (rc) {
        s->stats.refused_space += count;
        return rc;
    }
    s->stats.rows++;
    s->stats.points += count;
    return 0;
}

// ---- Points ----

static int points_make_room(struct store *s)
{
    int rc = s->tails.points.slot == EXTENT_NO_SLOT ? 0 : seal_points(s);
    if (rc || s->tails.points.slot != EXTENT_NO_SLOT)
        return rc;
    return tail_allocate(s, &s->tails.points, EXTENT_POINT_TAIL, 0, s->limits.point_room,
                         sizeof(struct point_record));
}

int append_point(struct store *s, uint32_t series, int64_t t_ns, double value)
{
    if (s->tails.points.used == s->tails.points.room) {
        int rc = points_make_room(s);
        if (rc)
            return rc;
    }
    if (s->catalog.series_use[series] != SERIES_SINGLE) {
        int rc = shared_single(s, series, t_ns);
        if (rc)
            return rc;
    }
    put_point(s->file.base + s->tails.points.offset +
                  s->tails.points.used * sizeof(struct point_record),
              series, t_ns, value);
    publish(s, &s->tails.points, s->tails.points.used + 1, t_ns);
    return 0;
}

int store_append(struct store *s, uint32_t series, int64_t t_ns, double value)
{
    if (series >= s->stats.series) {
        s->stats.refused_invalid++;
        return -EINVAL;
    }
    if (too_old(s, t_ns)) {
        s->stats.refused_old++;
        return -ERANGE;
    }
    if (store_is_missing(value))
        return 0;
    int rc = writer_is_cut(s)  ? -ESTALE
             : spill_in_use(s) ? -ENOSPC
                               : append_point(s, series, t_ns, value);
    if (writer_space_error(rc))
        rc = spill_point(s, series, t_ns, value);
    if (rc) {
        s->stats.refused_space++;
        return rc;
    }
    s->stats.points++;
    return 0;
}

// Appends the leading points and publishes them once. Stops at the first point that does not fit
// into the tail or needs special treatment; store_append handles that point. Returns the number of
// appended points.
static size_t append_run(struct store *s, const struct store_point *points, size_t count)
{
    if (writer_is_cut(s) || spill_in_use(s) || s->tails.points.slot == EXTENT_NO_SLOT)
        return 0;
    size_t room = s->tails.points.room - s->tails.points.used, n = 0, taken = 0;
    int64_t newest = s->newest_ns, oldest = retain_window_start(s);
    uint8_t *to =
        s->file.base + s->tails.points.offset + s->tails.points.used * sizeof(struct point_record);
    for (; n < count && taken < room; n++) {
        const struct store_point *p = &points[n];
        if (p->series >= s->stats.series || p->t_ns < oldest ||
            s->catalog.series_use[p->series] != SERIES_SINGLE)
            break;
        if (p->t_ns > newest) {
            if (s->limits.window_ns)
                break; // this point moves the time limit before which points are too old
            newest = p->t_ns;
        }
        if (store_is_missing(p->value))
            continue;
        put_point(to + taken++ * sizeof(struct point_record), p->series, p->t_ns, p->value);
    }
    if (taken)
        publish(s, &s->tails.points, s->tails.points.used + (uint32_t)taken, newest);
    s->stats.points += taken;
    return n;
}

int store_append_points(struct store *s, const struct store_point *points, size_t count,
                        size_t *refused)
{
    int first = 0;
    size_t lost = 0;
    for (size_t i = 0; i < count;) {
        i += append_run(s, points + i, count - i);
        if (i == count)
            break;
        int rc = store_append(s, points[i].series, points[i].t_ns, points[i].value);
        lost += rc != 0;
        if (!first)
            first = rc;
        i++;
    }
    if (refused)
        *refused = lost;
    return first;
}

// ---- Events ----

int append_event(struct store *s, struct str record)
{
    int rc = 0;
    if (s->tails.events.slot != EXTENT_NO_SLOT &&
        s->tails.events.room - s->tails.events.used < record.size)
        rc = seal_events(s);
    if (!rc && s->tails.events.slot == EXTENT_NO_SLOT)
        rc = tail_allocate(s, &s->tails.events, EXTENT_EVENT_TAIL, 0, s->limits.event_room, 1);
    if (rc)
        return rc;
    append_words(s->file.base + s->tails.events.offset + s->tails.events.used, record.data,
                 record.size / 8);
    publish(s, &s->tails.events, s->tails.events.used + (uint32_t)record.size,
            INT64_MIN); // events do not change the newest time of points
    return 0;
}

int store_append_event(struct store *s, const struct store_event *event)
{
    int rc = event_check(event);
    if (rc) {
        ++*(rc == -E2BIG ? &s->stats.refused_limit : &s->stats.refused_invalid);
        return rc;
    }
    struct buf b = {0};
    event_put(&b, event);
    rc = b.failed           ? -ENOMEM
         : writer_is_cut(s) ? -ESTALE
         : spill_in_use(s)  ? -ENOSPC
                            : append_event(s, buf_str(&b));
    if (writer_space_error(rc))
        rc = spill_event(s, buf_str(&b));
    buf_free(&b);
    if (rc) {
        s->stats.refused_space++;
        return rc;
    }
    s->stats.events++;
    return 0;
}
