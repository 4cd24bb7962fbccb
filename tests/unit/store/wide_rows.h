// wide_rows.h - sets of many columns, and the values that a file should contain afterwards.
#ifndef SONDE_TEST_STORE_WIDE_ROWS_H
#define SONDE_TEST_STORE_WIDE_ROWS_H

#include "fixture.h"

#include "store/inspect.h"
#include "store/io.h"
#include "store/layout.h"

enum { COLUMNS = 100 };

// A value encodes its position; few of the columns change at a time.
static inline double value_of(uint32_t column, int64_t t)
{
    return (double)(t / 50 * 50 * 1000 + column);
}

static inline void append_rows(struct store *s, uint32_t set, uint32_t columns, int64_t from,
                               int64_t to)
{
    double v[STORE_SET_SERIES_MAX];
    for (int64_t t = from; t < to; t++) {
        for (uint32_t c = 0; c < columns; c++)
            v[c] = value_of(c, t);
        assert_int_equal(store_append_row(s, set, t, v), 0);
    }
}

static inline void check_rows(uint32_t columns, int64_t from, int64_t to)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    for (uint32_t c = 0; c < columns; c += 7) {
        struct points p = points_of(snap, c, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, to - from);
        for (size_t i = 0; i < p.count; i++)
            assert_true(p.t[i] == from + (int64_t)i && p.v[i] == value_of(c, p.t[i]));
        points_free(&p);
    }
    assert_no_damage(r);
    store_snapshot_close(snap);
    store_reader_close(r);
}

static inline struct store_stats stats_of(const struct store *s)
{
    struct store_stats stats;
    store_get_stats(s, &stats);
    return stats;
}

static inline bool count_event(const struct store_event *e, void *user)
{
    (void)e;
    ++*(int *)user;
    return true;
}

static inline int events_in(const char *path)
{
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(path, &r, &e))
        fail_msg("%s", e.text);
    struct store_snapshot *snap = store_snapshot_open(r);
    int n = 0;
    assert_int_equal(store_events(snap, INT64_MIN, INT64_MAX, count_event, &n), 0);
    store_snapshot_close(snap);
    store_reader_close(r);
    return n;
}

static inline uint64_t values_in(const char *path)
{
    struct store_inspection in;
    struct error e = {0};
    if (store_inspect(path, &in, &e))
        fail_msg("%s", e.text);
    return in.values;
}

#endif
