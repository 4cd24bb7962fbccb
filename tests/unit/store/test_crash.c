// A crash at every write: the process is killed, or the machine goes down, after each single store
// to the file.
//
// A log has the actions of a scenario, write by write (write_trace.h). The test restores the file
// as it was after the first write, the second, and so on. After a kill, the file must have all
// acknowledged data, both for readers at once and after the next writer has opened it. After the
// machine went down, it must have all data up to the last sync, with any mixture of old and new
// pages on the disk. It must never have wrong data.
#include "../seed.h"
#include "crash_scenario.h"

#include "base/hash.h"

enum { MIXTURES = 2 }; // of pages, behind each write

// A sanitizer looks for errors in the code, which a part of the writes shows as well.
#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 4 };
#else
enum { EVERY = 1 };
#endif

// ── Checking a file ──────────────────────────────────────────────────────────────────────────────

struct bounds {
    size_t entry; // index in the log
    bool machine;
    int64_t least[COUNTS], most[COUNTS], floor;
};

struct event_check {
    const struct bounds *b;
    int64_t next;
    int64_t count;
};

static bool check_event(const struct store_event *e, void *user)
{
    struct event_check *x = user;
    assert_true(e->end_ns == 2 * e->start_ns && (int64_t)e->id == e->start_ns + 1 &&
                str_eq(e->text, STR("step")));
    assert_true(e->start_ns >= x->next);
    x->next = e->start_ns + 1;
    x->count += e->start_ns < x->b->least[EVENTS];
    return true;
}

static void check_content(const char *path, const struct bounds *b)
{
    struct store_reader *r;
    struct error e = {0};
    int rc = store_reader_open(path, &r, &e);
    if (rc && !b->least[SERIES])
        return; // never guaranteed
    if (rc)
        fail_msg("write %zu: %s", b->entry, e.text);
    struct store_snapshot *s = store_snapshot_open(r);
    assert_non_null(s);
    int64_t series = (int64_t)store_series_count(s);
    if (series < b->least[SERIES] || series > b->most[SERIES])
        fail_msg("write %zu: %lld series, not %lld to %lld", b->entry, (long long)series,
                 (long long)b->least[SERIES], (long long)b->most[SERIES]);
    for (uint32_t id = 0; id < series && id <= SINGLE; id++) {
        int what = id < COLUMNS ? ROWS : POINTS;
        struct points p = points_of(s, id, b->floor, INT64_MAX);
        int64_t needed = 0;
        for (size_t k = 0; k < p.count; k++) {
            needed += p.t[k] < b->least[what];
            if (p.t[k] >= b->most[what] || p.v[k] != value_of(id, p.t[k]))
                fail_msg("write %zu: series %u: %g at %lld", b->entry, id, p.v[k],
                         (long long)p.t[k]);
        }
        if (needed < b->least[what] - b->floor)
            fail_msg("write %zu%s: series %u: %lld of the first %lld points", b->entry,
                     b->machine ? " (machine)" : "", id, (long long)needed,
                     (long long)(b->least[what] - b->floor));
        points_free(&p);
    }
    struct event_check events = {.b = b};
    assert_int_equal(store_events(s, INT64_MIN, INT64_MAX, check_event, &events), 0);
    if (events.count < b->least[EVENTS])
        fail_msg("write %zu: %lld of the first %lld events", b->entry, (long long)events.count,
                 (long long)b->least[EVENTS]);
    struct store_damage damage;
    store_reader_damage(r, &damage);
    // Retired data is overwritten at once: when the machine goes down, an old table may still refer
    // to it.
    if (damage.blocks && !(b->machine && b->floor))
        fail_msg("write %zu%s: damage: %s", b->entry, b->machine ? " (machine)" : "", damage.first);
    store_snapshot_close(s);
    store_reader_close(r);
}

static void check_file(const struct trace_image *m, const struct bounds *b)
{
    char path[128];
    snprintf(path, sizeof path, "%s/copy.sonde", fixture_folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, m->bytes, m->size, 0), (ssize_t)m->size);
    close(fd);
    if (!b->machine)
        check_content(path, b);
    struct store *s;
    struct error e = {0};
    struct store_io io = store_io_real;
    io.sync = no_sync;
    struct store_options o = {.io = &io};
    if (store_open(path, &o, &s, &e))
        fail_msg("write %zu%s: %s", b->entry, b->machine ? " (machine)" : "", e.text);
    if (b->entry % 4 == 0)
        assert_int_equal(store_close(s, &e), 0);
    else
        store_abandon(s);
    check_content(path, b);
    unlink(path);
}

// Each page as it was after some write since the sync, because the disk writes pages in any order.
struct page_times {
    uint64_t seed;
    size_t from, to, now; // entries
};

static bool page_counts(size_t page, void *user)
{
    const struct page_times *x = user;
    uint64_t random = hash_u64(x->seed * UINT64_C(0x9e3779b97f4a7c15) + page);
    size_t until = random % 3 == 0   ? x->from
                   : random % 3 == 1 ? x->to
                                     : x->from + random / 3 % (x->to - x->from + 1);
    return x->now < until;
}

static void look_for_next(struct bounds *b, const struct scenario *x, size_t from)
{
    for (size_t i = from; i < trace.count; i++)
        if (trace.entries[i].kind == TRACE_ACKNOWLEDGED) {
            memcpy(b->most, trace.entries[i].numbers, sizeof b->most);
            return;
        }
    memcpy(b->most, x->counts, sizeof b->most);
}

// For instructions that fill or copy whole ranges byte by byte, the test checks only the end.
static bool inside_a_string(size_t i)
{
    const struct trace_entry *e = &trace.entries[i];
    return i + 1 < trace.count && e->kind == TRACE_WRITE && e[1].kind == TRACE_WRITE &&
           e[1].at == e->at + 1;
}

static void crash_everywhere(struct scenario *x)
{
    struct trace_image now = {0}, beginning = {0}, on_disk = {0}, mixed = {0};
    struct bounds killed = {.floor = x->floor}, machine = {.floor = x->floor, .machine = true};
    int64_t at_beginning[COUNTS] = {0};
    size_t synced_to = 0, begun_at = 0, writes = 0;
    const uint64_t seed = test_seed(0);
    image_copy(&now, &x->start);
    image_copy(&on_disk, &x->start);
    memcpy(killed.least, x->acknowledged_at_start, sizeof killed.least);
    memcpy(machine.least, x->acknowledged_at_start, sizeof machine.least);
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_entry *e = &trace.entries[i];
        image_apply(&now, e, NULL, NULL);
        if (e->kind == TRACE_ACKNOWLEDGED)
            memcpy(killed.least, e->numbers, sizeof killed.least);
        if (e->kind == TRACE_SYNC_BEGINS) {
            image_copy(&beginning, &now);
            memcpy(at_beginning, killed.least, sizeof at_beginning);
            begun_at = i + 1;
        }
        if (e->kind == TRACE_SYNCED) {
            image_copy(&on_disk, &beginning);
            if (e->at)
                memcpy(machine.least, at_beginning, sizeof at_beginning);
            synced_to = begun_at;
        }
        if (e->kind > TRACE_PUNCH || e->goes_on || inside_a_string(i))
            continue;
        if (writes++ % EVERY)
            continue;
        killed.entry = machine.entry = i;
        look_for_next(&killed, x, i);
        memcpy(machine.most, killed.most, sizeof machine.most);
        check_file(&now, &killed);
        for (unsigned k = 0; k < MIXTURES; k++) {
            struct page_times times = {
                .seed = seed + i * MIXTURES + k, .from = synced_to, .to = i + 1};
            image_copy(&mixed, &on_disk);
            for (times.now = synced_to; times.now <= i; times.now++)
                image_apply(&mixed, &trace.entries[times.now], page_counts, &times);
            if (mixed.size > 88)
                mixed.bytes[88] ^= 1; // another boot
            check_file(&mixed, &machine);
        }
    }
    print_message("           %zu writes\n", writes);
    assert_true(writes > 100);
    if (x->closed.size) {
        killed.entry = trace.count;
        memcpy(killed.most, x->counts, sizeof killed.most);
        memcpy(killed.least, x->counts, sizeof killed.least);
        check_file(&x->closed, &killed);
    }
    free(now.bytes);
    free(beginning.bytes);
    free(on_disk.bytes);
    free(mixed.bytes);
}

static void end(struct scenario *x)
{
    trace_stop();
    crash_everywhere(x);
    free(x->start.bytes);
    free(x->closed.bytes);
    trace_free();
    log_setup(LOG_WARNING, "test");
}

// ── Scenarios ────────────────────────────────────────────────────────────────────────────────────

static void whole_life(uint64_t rewrite_limit)
{
    struct scenario x;
    begin(&x);
    start_logging(&x);
    struct store_options o = {
        .size_limit_bytes = 256 << 10, .rewrite_limit_bytes = rewrite_limit, .io = &x.io};
    x.s = open_with(&o);
    define(&x, COLUMNS + 1);
    append_rows(&x, 20);
    append_points(&x, 20);
    append_events(&x, 3);
    sync_all(&x);
    append_rows(&x, 10);
    append_points(&x, 10);
    define(&x, 3);
    assert_int_equal(store_tick(x.s, INT64_C(1) << 40), 0); // starts a sync in the background
    append_rows(&x, 5);
    append_events(&x, 2);
    assert_int_equal(store_seal(x.s), 0);
    append_rows(&x, 3);
    assert_int_equal(store_tick(x.s, INT64_C(1) << 40), 0);
    assert_int_equal(store_tick(x.s, INT64_C(1) << 40), 0); // and finishes it
    append_rows(&x, 10);
    append_points(&x, 10);
    sync_all(&x);
    assert_int_equal(store_seal(x.s), 0);
    append_rows(&x, 4);
    append_points(&x, 4);
    append_events(&x, 2);
    close_store(x.s); // seals and merges
    end(&x);
}

static void a_life_that_ends_in_a_new_file(void **state)
{
    (void)state;
    whole_life(0);
}

static void a_life_that_ends_in_place(void **state)
{
    (void)state;
    whole_life(1);
}

// The extent table moves out of the header.
static void more_segments_than_the_header_has_room_for(void **state)
{
    (void)state;
    enum { SETS = 10 };
    struct scenario x;
    begin(&x);
    struct store_options o = {.size_limit_bytes = 256 << 10, .rewrite_limit_bytes = 1, .io = &x.io};
    x.s = open_with(&o);
    define(&x, COLUMNS + 1);
    define(&x, SETS);
    append_rows(&x, 5);
    start_logging(&x);
    for (uint32_t i = 0; i < SETS; i++) {
        uint32_t id = COLUMNS + 1 + i, set;
        double v = i;
        assert_int_equal(store_define_set(x.s, &id, 1, &set), 0);
        assert_int_equal(store_append_row(x.s, set, 1, &v), 0);
        append_rows(&x, 1);
        if (i == SETS / 2)
            sync_all(&x);
    }
    sync_all(&x);
    append_rows(&x, 5);
    close_store(x.s);
    end(&x);
}

// Continuing another writer's file may crash, too.
static void taking_up(void **state)
{
    (void)state;
    struct scenario x;
    begin(&x);
    struct store_options o = {.size_limit_bytes = 256 << 10, .io = &x.io};
    x.s = open_with(&o);
    define(&x, COLUMNS + 1);
    append_rows(&x, 30);
    append_points(&x, 30);
    assert_int_equal(store_seal(x.s), 0);
    append_rows(&x, 8);
    append_points(&x, 8);
    append_events(&x, 2);
    sync_all(&x);
    store_abandon(x.s);
    x.s = NULL;
    x.fd = -1;
    slurp(fixture_path, &x.start);
    trace.base = NULL;
    trace.file_bytes = x.start.size;
    start_logging(&x);
    x.s = open_with(&o);
    append_rows(&x, 8);
    append_points(&x, 8);
    assert_int_equal(store_seal(x.s), 0);
    append_rows(&x, 2);
    close_store(x.s);
    end(&x);
}

// A tick merges blocks; the next sync frees the old ones, and other data is written there.
static void merging(void **state)
{
    (void)state;
    struct scenario x;
    begin(&x);
    struct store_options o = {.size_limit_bytes = 1 << 20, .sync_interval_ns = 1, .io = &x.io};
    x.s = open_with(&o);
    define(&x, COLUMNS + 1);
    append_rows(&x, 9000);
    start_logging(&x);
    struct store_stats stats = {0};
    for (int64_t now = 1; !stats.merged_values && now < 100000; now++) {
        assert_int_equal(store_tick(x.s, INT64_C(1) << 40), 0);
        store_get_stats(x.s, &stats);
    }
    assert_true(stats.merged_values > 0);
    append_rows(&x, 2);
    sync_all(&x);
    append_rows(&x, 5);
    append_points(&x, 5);
    assert_int_equal(store_seal(x.s), 0);
    trace_stop();
    store_abandon(x.s);
    end(&x);
}

// Old blocks make room for new ones. A run without logging finds out when that happens.
static int64_t until_retired(struct scenario *x, int64_t stop_at)
{
    struct store_stats stats = {0};
    int64_t n = 0;
    for (; n < stop_at && stats.retired_blocks < 2; n++) {
        double v[COLUMNS];
        for (uint32_t c = 0; c < COLUMNS; c++)
            v[c] = value_of(c, x->counts[ROWS]);
        assert_int_equal(store_append_row(x->s, x->set, x->counts[ROWS], v), 0);
        acknowledged(x, ROWS);
        if (n % 16 == 15)
            assert_int_equal(store_seal(x->s), 0);
        store_get_stats(x->s, &stats);
    }
    return n;
}

static void retention(void **state)
{
    (void)state;
    enum { BEFORE = 2, BEHIND = 20 };
    struct store_options o = {.size_limit_bytes = 160 << 10};
    int64_t at = INT64_MAX;
    for (int pass = 0; pass < 2; pass++) {
        struct scenario x;
        begin(&x);
        o.io = &x.io;
        x.s = open_with(&o);
        define(&x, COLUMNS + 1);
        if (!pass) {
            at = until_retired(&x, INT64_MAX);
            store_abandon(x.s);
            unlink(fixture_path);
            continue;
        }
        assert_int_equal(until_retired(&x, at - BEFORE), at - BEFORE);
        start_logging(&x);
        append_rows(&x, BEFORE + 1);
        assert_int_equal(store_seal(x.s), 0);
        append_rows(&x, BEHIND);
        assert_int_equal(store_tick(x.s, INT64_C(1) << 40), 0);
        trace_stop();
        struct store_reader *r = open_reader();
        struct store_snapshot *snap = store_snapshot_open(r);
        struct points p = points_of(snap, 0, INT64_MIN, INT64_MAX);
        assert_true(p.count && p.t[0] > 0 && p.t[p.count - 1] == x.counts[ROWS] - 1);
        x.floor = p.t[0];
        points_free(&p);
        store_snapshot_close(snap);
        store_reader_close(r);
        x.acknowledged_at_start[POINTS] = x.counts[POINTS];
        store_abandon(x.s);
        end(&x);
    }
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup_in_memory, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_life_that_ends_in_a_new_file),
        CASE(a_life_that_ends_in_place),
        CASE(more_segments_than_the_header_has_room_for),
        CASE(taking_up),
        CASE(merging),
        CASE(retention),
    };
    int failed = cmocka_run_group_tests_name("store crash", tests, NULL, NULL);
    write_calls = true;
    return failed +
           cmocka_run_group_tests_name("store crash, blocks by write calls", tests, NULL, NULL);
}
