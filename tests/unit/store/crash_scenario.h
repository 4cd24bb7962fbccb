// crash_scenario.h - a life of a store whose writes the log has (write_trace.h), and the data that
// the store has acknowledged at each of them.
#ifndef SONDE_TESTS_STORE_CRASH_SCENARIO_H
#define SONDE_TESTS_STORE_CRASH_SCENARIO_H

#include "fixture.h"

#include "store/io.h"
#include "write_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { COLUMNS = 3, SINGLE = COLUMNS };

// Counts of acknowledged data, which are the numbers of a trace_entry.
enum { ROWS, POINTS, EVENTS, SERIES, COUNTS };

struct scenario {
    struct store_io io;
    struct store *s;
    int fd;        // of the store's file
    bool promises; // after a sync now, all data so far is safe
    int64_t counts[COUNTS];
    int64_t floor; // older data may have been retired
    uint32_t set;
    struct trace_image start;  // the file when logging began: all of it is on disk
    struct trace_image closed; // the file that replaced it
    int64_t acknowledged_at_start[COUNTS];
};

static double value_of(uint32_t series, int64_t t)
{
    return (double)(t * 100 + series) / 4;
}

// ── The store's system calls ─────────────────────────────────────────────────────────────────────

static int io_open(void *user, const char *path, int flags, unsigned mode)
{
    struct scenario *x = user;
    int fd = store_io_real.open(NULL, path, flags, mode);
    if (x->fd < 0)
        x->fd = fd;
    return fd;
}

static int io_reserve(void *user, int fd, uint64_t offset, uint64_t size)
{
    struct scenario *x = user;
    int rc = store_io_real.reserve(NULL, fd, offset, size);
    if (!rc && fd == x->fd && offset + size > trace.file_bytes) {
        trace.file_bytes = offset + size;
        trace_add(TRACE_SIZE, offset + size);
    }
    return rc;
}

static int io_truncate(void *user, int fd, uint64_t size)
{
    struct scenario *x = user;
    int rc = store_io_real.truncate(NULL, fd, size);
    if (!rc && fd == x->fd) {
        trace.file_bytes = size;
        trace_add(TRACE_SIZE, size);
    }
    return rc;
}

static int io_punch(void *user, int fd, uint64_t offset, uint64_t size)
{
    (void)user;
    int rc = store_io_real.punch(NULL, fd, offset, size);
    if (!rc)
        trace_add(TRACE_PUNCH, offset)->length = size;
    return rc;
}

static int io_write(void *user, int fd, const void *data, size_t size, uint64_t offset)
{
    struct scenario *x = user;
    int rc = store_io_real.write(NULL, fd, data, size, offset);
    if (!rc && fd == x->fd)
        trace_call(data, size, offset);
    return rc;
}

static int io_sync(void *user, int fd)
{
    struct scenario *x = user;
    if (fd == x->fd) {
        trace_add(TRACE_SYNC_BEGINS, 0);
        trace_add(TRACE_SYNCED, x->promises);
    }
    return 0;
}

// In the background: done at the second poll.
static int io_flush_start(void *user, int fd, uint64_t *flush)
{
    (void)user;
    (void)fd;
    *flush = 2;
    trace_add(TRACE_SYNC_BEGINS, 0);
    return 0;
}

static int io_flush_result(void *user, uint64_t *flush, bool wait)
{
    (void)user;
    if (--*flush && !wait)
        return -EINPROGRESS;
    trace_add(TRACE_SYNCED, true);
    return 0;
}

static int io_map(void *user, int fd, size_t size, uint8_t **out)
{
    struct scenario *x = user;
    int rc = store_io_real.map(NULL, fd, size, out);
    if (!rc && fd == x->fd)
        trace_mapped(*out, size);
    return rc;
}

static void slurp(const char *path, struct trace_image *out)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        fail_msg("%s: %s", path, strerror(errno));
    out->size = 0;
    image_resize(out, (size_t)st.st_size);
    assert_int_equal(pread(fd, out->bytes, out->size, 0), st.st_size);
    close(fd);
}

// The whole new file is on disk by then, and the old one is no longer used.
static int io_rename(void *user, const char *from, const char *to)
{
    struct scenario *x = user;
    trace_stop();
    slurp(from, &x->closed);
    return store_io_real.rename(NULL, from, to);
}

static int no_sync(void *user, int fd)
{
    (void)user;
    (void)fd;
    return 0;
}

// the kernel writes blocks; otherwise they are written through the mapping, as on file systems that
// do not support that
static bool write_calls;

static void begin(struct scenario *x)
{
    if (!trace_available())
        skip();
    trace = (struct trace){0};
    log_setup(LOG_ERROR, "test"); // it reports its losses each time
    *x = (struct scenario){.io = {.open = io_open,
                                  .reserve = io_reserve,
                                  .truncate = io_truncate,
                                  .punch = io_punch,
                                  .write = write_calls ? io_write : NULL,
                                  .sync = io_sync,
                                  .map = io_map,
                                  .rename = io_rename,
                                  .flush_start = io_flush_start,
                                  .flush_result = io_flush_result},
                           .fd = -1};
    x->io.user = x;
}

static void sync_all(struct scenario *x)
{
    x->promises = true;
    assert_int_equal(store_sync(x->s, NULL), 0);
    x->promises = false;
}

// Every write is logged from here on. All earlier data is on disk.
static void start_logging(struct scenario *x)
{
    if (x->s) {
        assert_int_equal(store_sync(x->s, NULL), 0);
        slurp(fixture_path, &x->start);
        trace.file_bytes = x->start.size;
    }
    memcpy(x->acknowledged_at_start, x->counts, sizeof x->counts);
    trace_start();
}

static void acknowledged(struct scenario *x, int what)
{
    x->counts[what]++;
    memcpy(trace_add(TRACE_ACKNOWLEDGED, 0)->numbers, x->counts, sizeof x->counts);
}

static void define(struct scenario *x, uint32_t count)
{
    uint32_t ids[COLUMNS + 1], metric = metric_named(x->s, "m");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = series_numbered(x->s, metric, (unsigned)x->counts[SERIES]);
        if (x->counts[SERIES] <= COLUMNS)
            ids[id] = id;
        acknowledged(x, SERIES);
    }
    if (x->counts[SERIES] == COLUMNS + 1)
        assert_int_equal(store_define_set(x->s, ids, COLUMNS, &x->set), 0);
}

static void append_rows(struct scenario *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double v[COLUMNS];
        for (uint32_t c = 0; c < COLUMNS; c++)
            v[c] = value_of(c, x->counts[ROWS]);
        assert_int_equal(store_append_row(x->s, x->set, x->counts[ROWS], v), 0);
        acknowledged(x, ROWS);
    }
}

static void append_points(struct scenario *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t t = x->counts[POINTS];
        assert_int_equal(store_append(x->s, SINGLE, t, value_of(SINGLE, t)), 0);
        acknowledged(x, POINTS);
    }
}

static void append_events(struct scenario *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t t = x->counts[EVENTS];
        struct store_event e = {.kind = STORE_SPAN,
                                .start_ns = t,
                                .end_ns = 2 * t,
                                .text = STR("step"),
                                .id = (uint64_t)t + 1};
        assert_int_equal(store_append_event(x->s, &e), 0);
        acknowledged(x, EVENTS);
    }
}

#endif
