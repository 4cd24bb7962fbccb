// What a snapshot keeps for its next cursors: by default enough for many columns; no more than the
// caller allows, with the same points.
#include "fixture.h"

#include "store/reader.h"

enum { COLUMNS = 8, ROWS = 60000, FEW_BYTES = 64 << 10 };

static void write_rows(void)
{
    struct store *s = open_with(&(struct store_options){0});
    uint32_t set = wide_set(s, 0, COLUMNS);
    double values[COLUMNS];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLUMNS; i++)
            values[i] = (double)(row * (i + 3) % 1009) / 8;
        assert_int_equal(store_append_row(s, set, 1000 * (int64_t)row * row, values), 0);
    }
    close_store(s);
}

// Reads all series, and returns the most bytes that were kept between them.
static size_t read_all(struct store_snapshot *s)
{
    size_t most = 0;
    for (uint32_t id = 0; id < COLUMNS; id++) {
        struct points p = points_of(s, id, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, ROWS);
        for (size_t i = 0; i < ROWS; i += 997)
            assert_true(p.v[i] == (double)(i * (id + 3) % 1009) / 8);
        free(p.t);
        free(p.v);
        most = s->cache.bytes > most ? s->cache.bytes : most;
    }
    return most;
}

static void a_snapshot_keeps_no_more_than_allowed(void **state)
{
    (void)state;
    write_rows();
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    // the time stamps alone
    assert_true(read_all(s) >= ROWS * sizeof(int64_t));
    store_snapshot_close(s);
    s = store_snapshot_open(r);
    store_snapshot_keep_at_most(s, FEW_BYTES);
    // and the item that was added last, which may be larger
    assert_true(read_all(s) < ROWS * sizeof(int64_t) / 2);
    store_snapshot_close(s);
    assert_no_damage(r);
    store_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_snapshot_keeps_no_more_than_allowed, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
