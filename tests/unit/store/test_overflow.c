// Unpacked parts beyond the memory of a snapshot lie in a file without a name: each part is
// unpacked once, and memory stays bounded. Without room in the file, readers get the same points.
#include "fixture.h"

#include "base/hash.h"
#include "store/overflow.h"
#include "store/reader.h"

#include <dirent.h>

enum { COLUMNS = 16, ROWS = 60000, FEW_BYTES = 256 << 10 };

static double value_at(int row, uint32_t column)
{
    return (double)(hash_u64((uint64_t)row * COLUMNS + column) % 100003) / 8;
}

static void write_rows(void)
{
    struct store *s = open_with(&(struct store_options){0});
    uint32_t set = wide_set(s, 0, COLUMNS);
    double values[COLUMNS];
    for (int row = 0; row < ROWS; row++) {
        for (uint32_t i = 0; i < COLUMNS; i++)
            values[i] = value_at(row, i);
        assert_int_equal(store_append_row(s, set, 1000 * (int64_t)(row + 1), values), 0);
    }
    close_store(s);
}

// Reads all series, and returns the most bytes that the snapshot kept in memory between them.
static size_t read_all(struct store_snapshot *s)
{
    size_t most = 0;
    for (uint32_t id = 0; id < COLUMNS; id++) {
        struct points p = points_of(s, id, INT64_MIN, INT64_MAX);
        assert_int_equal(p.count, ROWS);
        for (int i = 0; i < ROWS; i++)
            assert_true(p.t[i] == 1000 * (int64_t)(i + 1) && p.v[i] == value_at(i, id));
        points_free(&p);
        most = s->cache.bytes > most ? s->cache.bytes : most;
    }
    return most;
}

static size_t overflowed_parts(const struct store_snapshot *s, const void **first)
{
    size_t count = 0;
    *first = NULL;
    for (size_t i = 0; i < s->cache.capacity; i++) {
        const struct cache_item *item = s->cache.items[i];
        if (!item || !item->in_overflow)
            continue;
        count++;
        if (!*first || (uintptr_t)item->data < (uintptr_t)*first)
            *first = item->data;
    }
    return count;
}

static size_t files_in_folder(void)
{
    DIR *folder = opendir(fixture_folder);
    size_t count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void each_part_is_unpacked_once(void **state)
{
    (void)state;
    write_rows();
    size_t files = files_in_folder();
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    struct store_overflow *o = store_overflow_open(fixture_folder);
    assert_non_null(o);
    assert_int_equal(files_in_folder(), files);
    store_snapshot_keep_at_most(s, FEW_BYTES);
    store_snapshot_overflow(s, o);
    assert_true(read_all(s) <= FEW_BYTES);
    const void *first, *again;
    size_t parts = overflowed_parts(s, &first);
    assert_true(parts > 1);
    // The next part has the place after the last one, so a part that is unpacked again would move
    // it.
    const uint8_t *place = overflow_take(o, 1);
    overflow_give_back(o, place);
    read_all(s);
    assert_int_equal(overflowed_parts(s, &again), parts);
    assert_ptr_equal(again, first);
    assert_ptr_equal(overflow_take(o, 1), place);
    store_snapshot_close(s);
    store_overflow_close(o);
    assert_no_damage(r);
    store_reader_close(r);
}

static void without_room_parts_are_unpacked_again(void **state)
{
    (void)state;
    write_rows();
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    struct store_overflow *o = store_overflow_open(fixture_folder);
    const void *first;
    assert_null(overflow_take(o, SIZE_MAX / 2));
    assert_true(overflow_is_full(o));
    store_snapshot_keep_at_most(s, FEW_BYTES);
    store_snapshot_overflow(s, o);
    read_all(s);
    assert_int_equal(overflowed_parts(s, &first), 0);
    store_snapshot_close(s);
    store_overflow_close(o);
    assert_no_damage(r);
    store_reader_close(r);
}

static void a_folder_that_does_not_exist_has_no_overflow(void **state)
{
    (void)state;
    write_rows();
    assert_null(store_overflow_open("/nonexistent/folder"));
    store_overflow_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_part_is_unpacked_once, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(without_room_parts_are_unpacked_again, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_does_not_exist_has_no_overflow, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
