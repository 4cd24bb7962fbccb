// fixture.h - the common part of the tests of the store: each test has a file, and short functions
// write and read it.
#ifndef SONDE_TESTS_STORE_FIXTURE_H
#define SONDE_TESTS_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "store/read.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char fixture_folder[64];
static char fixture_path[96];

static inline int fixture_setup_in(const char *parent)
{
    snprintf(fixture_folder, sizeof fixture_folder, "%.40s/sonde-test-XXXXXX", parent);
    if (!mkdtemp(fixture_folder))
        return -1;
    snprintf(fixture_path, sizeof fixture_path, "%s/a.sonde", fixture_folder);
    return 0;
}

static inline int fixture_setup(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    return fixture_setup_in(tmp && *tmp ? tmp : "/tmp");
}

// In memory if possible, for tests that write thousands of small files: a disk takes three times as
// long.
static inline int fixture_setup_in_memory(void **state)
{
    return access("/dev/shm", W_OK) ? fixture_setup(state) : fixture_setup_in("/dev/shm");
}

static inline int fixture_teardown(void **state)
{
    (void)state;
    unlink(fixture_path);
    return rmdir(fixture_folder);
}

static inline struct store *open_with(const struct store_options *o)
{
    struct store *s;
    struct error e = {0};
    if (store_open(fixture_path, o, &s, &e))
        fail_msg("store_open: %s", e.text);
    return s;
}

static inline void close_store(struct store *s)
{
    struct error e = {0};
    if (store_close(s, &e))
        fail_msg("store_close: %s", e.text);
}

static inline struct store_reader *open_reader(void)
{
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(fixture_path, &r, &e))
        fail_msg("store_reader_open: %s", e.text);
    return r;
}

static inline void assert_no_damage(struct store_reader *r)
{
    struct store_damage damage;
    store_reader_damage(r, &damage);
    if (damage.blocks)
        fail_msg("%llu damaged blocks: %s", (unsigned long long)damage.blocks, damage.first);
}

static inline uint32_t metric_named(struct store *s, const char *name)
{
    uint32_t id;
    struct store_metric m = {.name = str_of(name)};
    assert_int_equal(store_define_metric(s, &m, &id), 0);
    return id;
}

// A series of the metric with the label n=number.
static inline uint32_t series_numbered(struct store *s, uint32_t metric, unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    struct store_label label = {STR("n"), str_of(text)};
    uint32_t id;
    assert_int_equal(store_define_series(s, metric, &label, 1, &id), 0);
    return id;
}

// A set of series of the metric m, numbered from `first` on.
static inline uint32_t wide_set(struct store *s, uint32_t first, uint32_t columns)
{
    uint32_t ids[STORE_SET_SERIES_MAX], set, m = metric_named(s, "m");
    for (uint32_t i = 0; i < columns; i++)
        ids[i] = series_numbered(s, m, first + i);
    assert_int_equal(store_define_set(s, ids, columns, &set), 0);
    return set;
}

// All points of a series in a range, and their summaries.
struct points {
    int64_t *t;
    double *v;
    size_t count, capacity;
    size_t runs, summaries;
};

static inline struct points points_of(struct store_snapshot *s, uint32_t series, int64_t from,
                                      int64_t to)
{
    struct points p = {0};
    struct store_cursor *c = store_cursor_open(s, series, from, to);
    assert_non_null(c);
    struct store_run run;
    int rc;
    while ((rc = store_cursor_next(c, &run)) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
        assert_true(n <= run.count);
        if (p.count + n > p.capacity) {
            p.capacity = (p.count + n) * 2;
            p.t = realloc(p.t, p.capacity * sizeof *p.t);
            p.v = realloc(p.v, p.capacity * sizeof *p.v);
        }
        p.runs++;
        p.summaries += run.has_summary;
        double sum = 0, min = 0, max = 0;
        for (size_t i = 0; i < n; i++) {
            assert_true(!p.count || p.t[p.count - 1] < t[i]);
            assert_true(t[i] >= from && t[i] <= to);
            p.t[p.count] = t[i];
            p.v[p.count++] = v[i];
            sum += v[i];
            min = !i || v[i] < min ? v[i] : min;
            max = !i || v[i] > max ? v[i] : max;
        }
        if (n == run.count) {
            assert_int_equal(run.first_ns, t[0]);
            assert_int_equal(run.last_ns, t[n - 1]);
            if (run.has_summary && !run.nans) {
                assert_true(run.summary.min == min && run.summary.max == max);
                assert_true(run.summary.first == v[0] && run.summary.last == v[n - 1]);
                assert_true(sum == run.summary.sum || (sum - run.summary.sum) / sum < 1e-9);
            }
        }
    }
    assert_int_equal(rc, 0);
    store_cursor_close(c);
    return p;
}

static inline void points_free(struct points *p)
{
    free(p->t);
    free(p->v);
}

#endif
