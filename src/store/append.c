// append.c - the way in: rows, points and events into their tails.
#include "store/event_record.h"
#include "store/writer.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

// What other threads and processes read while it is written.
static void put_words(uint8_t *to, const void *from, size_t words)
{
    uint64_t *at = (uint64_t *)(void *)to;
    for (size_t i = 0; i < words; i++) {
        uint64_t w;
        memcpy(&w, (const char *)from + 8 * i, 8);
        __atomic_store_n(&at[i], w, __ATOMIC_RELAXED);
    }
}

static void appended(struct store *s, int64_t t_ns)
{
    struct superblock *sb = extents_super(&s->file);
    if (t_ns > s->newest_ns)
        s->newest_ns = t_ns;
    __atomic_store_n(&sb->version, sb->version + 1, __ATOMIC_RELEASE);
}

static bool too_old(const struct store *s, int64_t t_ns)
{
    return s->window_ns && s->newest_ns > INT64_MIN + s->window_ns && t_ns < s->newest_ns - s->window_ns;
}

int space_failed(struct store *s, int rc)
{
    s->stats.space_errors++;
    if (!s->space_reported)
        log_warning("%s: no space for more data (%s); what comes is refused until there is", s->path, strerror(-rc));
    s->space_reported = true;
    return rc;
}

static int set_make_room(struct store *s, uint32_t id)
{
    struct set *set = &s->sets[id];
    if (set->slot != EXTENT_NO_SLOT)
        return seal_set(s, id);
    uint64_t row_bytes = (set->count + 1) * UINT64_C(8);
    uint32_t rows = TAIL_ROWS_MAX;
    while (rows > 16 && rows * row_bytes > s->memory_limit_bytes / 64)
        rows /= 2;
    int slot = extent_allocate(&s->file, SEGMENT_SET_TAIL, id, set->sequence, rows * row_bytes);
    if (slot < 0)
        return space_failed(s, slot);
    set->slot = slot;
    set->rows = 0;
    set->rows_max = rows;
    set->offset = extent_entry(&s->file, slot)->offset;
    return 0;
}

int store_append_row(struct store *s, uint32_t id, int64_t t_ns, const double *values)
{
    if (id >= s->stats.sets) {
        s->stats.refused_invalid++;
        return -EINVAL;
    }
    struct set *set = &s->sets[id];
    if (too_old(s, t_ns)) {
        s->stats.refused_old += set->count;
        return -ERANGE;
    }
    if (set->rows == set->rows_max) {
        int rc = set_make_room(s, id);
        if (rc) {
            s->stats.refused_space += set->count;
            return rc;
        }
    }
    uint8_t *row = s->file.base + set->offset + set->rows * (set->count + 1) * UINT64_C(8);
    put_words(row, &t_ns, 1);
    put_words(row + 8, values, set->count);
    extent_publish(extent_entry(&s->file, set->slot), ++set->rows);
    s->stats.rows++;
    s->stats.points += set->count;
    appended(s, t_ns);
    return 0;
}

static int points_make_room(struct store *s)
{
    if (s->point_slot != EXTENT_NO_SLOT)
        return seal_points(s);
    int slot =
        extent_allocate(&s->file, SEGMENT_POINT_TAIL, 0, s->point_sequence, TAIL_POINTS * sizeof(struct point_record));
    if (slot < 0)
        return space_failed(s, slot);
    s->point_slot = slot;
    s->point_count = 0;
    s->point_offset = extent_entry(&s->file, slot)->offset;
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
    if (s->point_slot == EXTENT_NO_SLOT || s->point_count == TAIL_POINTS) {
        int rc = points_make_room(s);
        if (rc) {
            s->stats.refused_space++;
            return rc;
        }
    }
    if (store_is_missing(value))
        return 0;
    struct point_record record = {series, 0, t_ns, value};
    put_words(s->file.base + s->point_offset + s->point_count * sizeof record, &record, sizeof record / 8);
    extent_publish(extent_entry(&s->file, s->point_slot), ++s->point_count);
    s->stats.points++;
    appended(s, t_ns);
    return 0;
}

int store_append_points(struct store *s, const struct store_point *points, size_t count, size_t *refused)
{
    int first = 0;
    size_t lost = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = store_append(s, points[i].series, points[i].t_ns, points[i].value);
        lost += rc != 0;
        if (!first)
            first = rc;
    }
    if (refused)
        *refused = lost;
    return first;
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
    if (b.failed) {
        buf_free(&b);
        return -ENOMEM;
    }
    if (s->event_slot != EXTENT_NO_SLOT && TAIL_EVENT_BYTES - s->event_bytes < b.size)
        rc = seal_events(s);
    if (!rc && s->event_slot == EXTENT_NO_SLOT) {
        rc = extent_allocate(&s->file, SEGMENT_EVENT_TAIL, 0, s->event_sequence, TAIL_EVENT_BYTES);
        if (rc >= 0) {
            s->event_slot = rc;
            s->event_bytes = 0;
            s->event_offset = extent_entry(&s->file, rc)->offset;
            rc = 0;
        } else {
            space_failed(s, rc);
        }
    }
    if (rc) {
        s->stats.refused_space++;
        buf_free(&b);
        return rc;
    }
    put_words(s->file.base + s->event_offset + s->event_bytes, b.data, b.size / 8);
    s->event_bytes += b.size;
    extent_publish(extent_entry(&s->file, s->event_slot), s->event_bytes);
    s->stats.events++;
    appended(s, event->start_ns);
    buf_free(&b);
    return 0;
}
