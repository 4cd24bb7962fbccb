// Data that is not in the file is counted in its header; on a full disk, the file continues in
// another place.
#include "fixture.h"

#include "../seed.h"
#include "base/hash.h"
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

struct disk {
    struct store_io io;
    bool full;
    const char *elsewhere; // it always has space
};

static int elsewhere_fd = -1;

static int open_file(void *user, const char *path, int flags, unsigned mode)
{
    struct disk *d = user;
    int fd = store_io_real.open(NULL, path, flags, mode);
    if (d->elsewhere && !strcmp(path, d->elsewhere))
        elsewhere_fd = fd;
    return fd;
}

static int reserve(void *user, int fd, uint64_t offset, uint64_t size)
{
    struct disk *d = user;
    return d->full && fd != elsewhere_fd ? -ENOSPC : store_io_real.reserve(NULL, fd, offset, size);
}

static struct disk disk(void)
{
    struct disk d = {.io = store_io_real};
    d.io.open = open_file;
    d.io.reserve = reserve;
    elsewhere_fd = -1;
    return d;
}

static struct store_losses losses_of(const char *path)
{
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(path, &r, &e))
        fail_msg("%s", e.text);
    struct store_losses out;
    store_reader_losses(r, &out);
    store_reader_close(r);
    return out;
}

// Appends until `refused` appends were rejected.
static uint64_t append_until_refused(struct store *s, uint32_t set, uint32_t single,
                                     unsigned refused)
{
    uint64_t lost = 0;
    double v[3] = {1, 2, 3};
    for (int64_t t = 0; refused; t++) {
        if (store_append_row(s, set, t, v)) {
            lost += 3;
            refused--;
        }
        if (refused && store_append(s, single, t, 1)) {
            lost++;
            refused--;
        }
    }
    return lost;
}

static void define(struct store *s, uint32_t *set, uint32_t *single)
{
    uint32_t m = metric_named(s, "m"), ids[3];
    for (unsigned i = 0; i < 3; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, 3, set), 0);
    *single = series_numbered(s, m, 3);
}

static uint64_t values_in_file(void)
{
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    uint64_t values = 0;
    for (uint32_t id = 0; id < store_series_count(snap); id++) {
        struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
        values += p.count;
        points_free(&p);
    }
    store_snapshot_close(snap);
    store_reader_close(r);
    return values;
}

// If the writer closes the file or dies, each appended value is either in the file or counted as
// lost.
static void stored_and_lost_values_add_up(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    for (int killed = 0; killed < 2; killed++) {
        struct disk d = disk();
        d.io.user = &d;
        struct store_options o = {
            .size_limit_bytes = 4 << 20, .memory_limit_bytes = 64 << 10, .io = &d.io};
        struct store *s = open_with(&o);
        uint32_t set, single;
        define(s, &set, &single);
        d.full = true;
        uint64_t refused = append_until_refused(s, set, single, 10);
        store_note_dropped(s, refused);
        struct store_stats stats;
        store_get_stats(s, &stats);
        uint64_t appended = stats.points + refused, waiting = store_waiting(s);
        assert_true(waiting > 0);
        assert_int_equal(losses_of(fixture_path).waiting, waiting);
        assert_int_equal(losses_of(fixture_path).dropped, refused);
        struct error e = {0};
        if (killed)
            store_abandon(s);
        else
            assert_int_equal(store_close(s, &e), -ENOSPC);
        struct store_losses lost = losses_of(fixture_path);
        assert_int_equal(lost.dropped, refused + waiting);
        assert_int_equal(lost.waiting, 0);
        assert_int_equal(values_in_file() + lost.dropped, appended);
        // The next writer continues the counts, also in a new file.
        d.full = false;
        s = open_with(&o);
        store_note_dropped(s, 5);
        store_note_dropped(s, 7);
        close_store(s);
        assert_int_equal(losses_of(fixture_path).dropped, refused + waiting + 7);
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

static void retired_values_are_counted(void **state)
{
    (void)state;
    struct store_options o = {.size_limit_bytes = 1 << 20};
    struct store *s = open_with(&o);
    uint32_t set, single;
    define(s, &set, &single);
    for (int64_t t = 0; t < 200000; t++) {
        double v[3] = {(double)(hash_u64((uint64_t)t) >> 11), (double)t,
                       (double)(hash_u64((uint64_t)t + 7) >> 11)};
        assert_int_equal(store_append_row(s, set, t, v), 0);
    }
    close_store(s);
    uint64_t retired = losses_of(fixture_path).retired;
    assert_true(retired > 0);
    assert_int_equal(values_in_file() + retired, 600000);
}

static void closing_a_removed_file_fails(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t set, single;
    define(s, &set, &single);
    assert_int_equal(store_append(s, single, 1, 1), 0);
    unlink(fixture_path);
    struct error e = {0};
    assert_int_equal(store_close(s, &e), -ENOENT);
}

// The disk becomes full at any moment: all appended data, including pending data, is in the other
// place, however the writer ends.
static void the_store_continues_in_another_folder(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    uint64_t seed = test_seed(20261122);
    unsigned rounds = 16 * test_rounds();
    char other[128];
    snprintf(other, sizeof other, "%s/other", fixture_folder);
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t random = hash_u64(seed + round);
        struct disk d = disk();
        d.io.user = &d;
        d.elsewhere = other;
        struct store_options o = {
            .size_limit_bytes = 8 << 20, .io = &d.io, .rewrite_limit_bytes = random & 1};
        struct store *s = open_with(&o);
        uint32_t set, single;
        define(s, &set, &single);
        int64_t full_at = (int64_t)(random % 4000),
                moved_at = full_at + (int64_t)(random / 4000 % 3000), n = 8000;
        struct store_reader *before = open_reader(); // continues to read its open file
        for (int64_t t = 0; t < n; t++) {
            double v[3] = {(double)t, (double)t * 2, (double)t * 3};
            d.full |= t == full_at;
            if (t == moved_at) {
                struct error e = {0};
                if (store_move(s, other, &e))
                    fail_msg("round %u: %s", round, e.text);
                assert_int_equal(store_tick(s, t << 30), 0);
                assert_int_equal(store_waiting(s), 0);
            }
            assert_int_equal(store_append_row(s, set, t, v), 0);
            assert_int_equal(store_append(s, single, t, (double)t * 4), 0);
            if (t % 700 == 0)
                store_tick(s, (t + 1) << 30);
        }
        store_reader_close(before);
        if (random & 2)
            close_store(s);
        else
            store_abandon(s);
        assert_int_equal(losses_of(other).dropped, 0);
        assert_int_equal(rename(other, fixture_path), 0);
        struct store_reader *r = open_reader();
        struct store_snapshot *snap = store_snapshot_open(r);
        for (uint32_t id = 0; id < 4; id++) {
            struct points p = points_of(snap, id, INT64_MIN, INT64_MAX);
            assert_int_equal(p.count, n);
            for (int64_t i = 0; i < n; i++)
                assert_true(p.t[i] == i && p.v[i] == (double)i * (id + 1));
            points_free(&p);
        }
        store_snapshot_close(snap);
        store_reader_close(r);
        close_store(open_with(NULL));
        unlink(fixture_path);
    }
    log_setup(LOG_WARNING, "test");
}

// Both places are full, or the other file exists: nothing changes.
static void a_failed_move_changes_nothing(void **state)
{
    (void)state;
    struct disk d = disk();
    d.io.user = &d;
    struct store_options o = {.io = &d.io};
    struct store *s = open_with(&o);
    uint32_t set, single;
    define(s, &set, &single);
    struct error e = {0};
    char other[128];
    snprintf(other, sizeof other, "%s/other", fixture_folder);
    d.full = true;
    assert_int_equal(store_move(s, other, &e), -ENOSPC);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(store_move(s, fixture_path, &e), -EEXIST);
    assert_int_equal(store_append(s, single, 1, 1), 0);
    d.full = false;
    close_store(s);
    assert_int_equal(values_in_file(), 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(stored_and_lost_values_add_up), CASE(retired_values_are_counted),
        CASE(closing_a_removed_file_fails),  CASE(the_store_continues_in_another_folder),
        CASE(a_failed_move_changes_nothing),
    };
    return cmocka_run_group_tests_name("store losses", tests, NULL, NULL);
}
