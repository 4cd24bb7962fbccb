// Damaged files: every bit flipped, every length truncated. Never a crash, never a wrong value
// without a report.
#include "fixture.h"

#include "base/hash.h"
#include "store/inspect.h"
#include "store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { COLUMNS = 4, ROWS = 300 };

static double value_of(uint32_t series, int64_t t)
{
    return (double)(t * 100 + series) / 4;
}

static void make(bool close, bool seal)
{
    struct store_label meta = {STR("host"), STR("n1")};
    struct store_options o = {.size_limit_bytes = 1 << 20, .meta = &meta, .meta_count = 1};
    struct store *s = open_with(&o);
    uint32_t m = metric_named(s, "m"), ids[COLUMNS + 1], set;
    for (uint32_t i = 0; i <= COLUMNS; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, COLUMNS, &set), 0);
    for (int64_t t = 0; t < ROWS; t++) {
        double v[COLUMNS];
        for (uint32_t i = 0; i < COLUMNS; i++)
            v[i] = i == 3 && t % 5 == 0 ? store_missing() : value_of(i, t);
        assert_int_equal(store_append_row(s, set, t, v), 0);
        assert_int_equal(store_append(s, ids[COLUMNS], t, value_of(COLUMNS, t)), 0);
    }
    struct store_event e = {
        .kind = STORE_SPAN, .start_ns = 5, .end_ns = 50, .text = STR("epoch"), .id = 1};
    assert_int_equal(store_append_event(s, &e), 0);
    if (seal)
        assert_int_equal(store_seal(s), 0);
    if (close)
        close_store(s);
    else
        store_abandon(s);
}

static char *slurp(size_t *size)
{
    int fd = open(fixture_path, O_RDONLY);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    *size = (size_t)st.st_size;
    char *bytes = malloc(*size + 1);
    assert_int_equal(pread(fd, bytes, *size, 0), st.st_size);
    close(fd);
    return bytes;
}

static void spit(const char *bytes, size_t size)
{
    int fd = open(fixture_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
}

static void poke(size_t at, char byte)
{
    int fd = open(fixture_path, O_RDWR);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static bool count_event(const struct store_event *e, void *user)
{
    *(int *)user += str_eq(e->text, STR("epoch"));
    return true;
}

struct outcome {
    bool opened, reported;
    size_t points, wrong, missing;
};

// Reads everything. A value is wrong if it does not match its series and time.
static struct outcome read_all(void)
{
    struct outcome x = {0};
    struct store_reader *r;
    struct error e = {0};
    if (store_reader_open(fixture_path, &r, &e)) {
        assert_true(e.text[0]);
        x.reported = true;
        return x;
    }
    x.opened = true;
    struct store_snapshot *s = store_snapshot_open(r);
    assert_non_null(s);
    uint32_t series = (uint32_t)store_series_count(s);
    for (uint32_t id = 0; id < series && id <= COLUMNS; id++) {
        struct store_series_info info;
        assert_true(store_series_get(s, id, &info));
        struct store_cursor *c = store_cursor_open(s, id, INT64_MIN, INT64_MAX);
        assert_non_null(c);
        struct store_run run;
        int rc;
        size_t n_series = 0;
        while ((rc = store_cursor_next(c, &run)) > 0) {
            const int64_t *t;
            const double *v;
            size_t n;
            assert_int_equal(store_cursor_points(c, &t, &v, &n), 0);
            double sum = 0;
            for (size_t i = 0; i < n; i++) {
                x.wrong += v[i] != value_of(id, t[i]) || t[i] < 0 || t[i] >= ROWS;
                sum += v[i];
            }
            if (run.has_summary && n == run.count)
                x.wrong += run.summary.sum != sum || run.summary.first != v[0] ||
                           run.summary.last != v[n - 1];
            n_series += n;
        }
        assert_int_equal(rc, 0);
        store_cursor_close(c);
        x.points += n_series;
        size_t expected = id == 3 ? ROWS - ROWS / 5 : ROWS;
        x.missing += n_series < expected ? expected - n_series : 0;
    }
    if (series < COLUMNS + 1)
        x.missing += ROWS;
    int events = 0;
    assert_int_equal(store_events(s, INT64_MIN, INT64_MAX, count_event, &events), 0);
    x.missing += events != 1;
    store_snapshot_close(s);
    struct store_damage damage;
    store_reader_damage(r, &damage);
    x.reported = damage.blocks > 0;
    store_reader_close(r);
    return x;
}

static bool in_tail(const char *bytes, size_t at)
{
    struct superblock sb;
    memcpy(&sb, bytes, sizeof sb);
    for (uint32_t i = 0; i < sb.table_count; i++) {
        struct extent_entry e;
        memcpy(&e, bytes + sb.table_offset + i * sizeof e, sizeof e);
        if (e.kind >= EXTENT_SET_TAIL && e.kind <= EXTENT_EVENT_TAIL && at >= e.offset &&
            at < e.offset + e.size)
            return true;
    }
    return false;
}

// While a file is being written, the fields for its used sizes have no checksum, because each of
// them is updated by a single store. In a closed file, checksums cover all bytes.
static bool unguarded(const char *bytes, size_t at)
{
    struct superblock sb;
    memcpy(&sb, bytes, sizeof sb);
    if (at >= offsetof(struct superblock, state) && at < sizeof sb)
        return true;
    if (at >= sb.table_offset &&
        at < sb.table_offset + sb.table_capacity * sizeof(struct extent_entry)) {
        size_t field = (at - sb.table_offset) % sizeof(struct extent_entry);
        bool empty = (at - sb.table_offset) / sizeof(struct extent_entry) >= sb.table_count;
        return empty || field >= offsetof(struct extent_entry, used);
    }
    return false;
}

static void turn_bits(bool close, bool seal)
{
    make(close, seal);
    size_t size;
    char *bytes = slurp(&size);
    struct outcome whole = read_all();
    assert_true(whole.opened && !whole.wrong && !whole.missing && !whole.reported);
    size_t reported = 0;
    for (size_t at = 0; at < size; at++) {
        bool tail = in_tail(bytes, at), free_to_change = tail || (!close && unguarded(bytes, at));
        if (tail && at % 1024)
            continue; // tails are large, and have no checksums until they are synced or sealed
        if (!close && at > LAYOUT_HEADER_BYTES && !bytes[at] && at % 64)
            continue; // most of a live file is unused
        bytes[at] ^= (char)(1 << at % 8);
        poke(at, bytes[at]);
        struct outcome x = read_all();
        if (!free_to_change && (x.wrong || (x.missing && !x.reported)))
            fail_msg("bit %zu of byte %zu: %zu wrong, %zu missing, %s", at % 8, at, x.wrong,
                     x.missing, x.reported ? "reported" : "not reported");
        reported += x.reported;
        // A writer continues it, or reports why not.
        if (at % 29 == 0) {
            struct store *s;
            struct error e = {0};
            if (!store_open(fixture_path, NULL, &s, &e))
                store_abandon(s);
            else
                assert_true(e.text[0]);
            bytes[at] ^= (char)(1 << at % 8);
            spit(bytes, size);
            continue;
        }
        bytes[at] ^= (char)(1 << at % 8);
        poke(at, bytes[at]);
    }
    assert_true(reported > 100);
    free(bytes);
}

static void bits_of_a_closed_file(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    turn_bits(true, true);
}

static void bits_of_a_live_file(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    turn_bits(false, true);
}

static void every_length(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    for (int close = 0; close < 2; close++) {
        make(close, true);
        size_t size;
        char *bytes = slurp(&size);
        for (size_t n = 0; n < size; n += n < 4096 ? 1 : 509) {
            spit(bytes, n);
            struct outcome x = read_all();
            assert_int_equal(x.wrong, 0);
            if (close)
                assert_true(x.reported);
        }
        free(bytes);
        unlink(fixture_path);
    }
    // A writer that was killed early leaves an empty file.
    spit("", 0);
    struct store *s = open_with(NULL);
    close_store(s);
}

static void not_a_store(void **state)
{
    (void)state;
    struct store_reader *r;
    struct store *s;
    struct error e = {0};
    assert_int_equal(store_reader_open(fixture_path, &r, &e), -ENOENT);
    char text[4096];
    memset(text, 'x', sizeof text);
    spit(text, sizeof text);
    assert_int_equal(store_reader_open(fixture_path, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a sonde file"));
    assert_int_equal(store_open(fixture_path, NULL, &s, &e), -EINVAL);
    size_t size;
    char *after = slurp(&size);
    assert_memory_equal(after, text, sizeof text); // and it is not changed
    free(after);
    assert_int_equal(store_open("/nowhere/at/all.sonde", NULL, &s, &e), -ENOENT);
}

static void another_version(void **state)
{
    (void)state;
    make(true, true);
    size_t size;
    char *bytes = slurp(&size);
    bytes[offsetof(struct superblock, major)]++;
    uint32_t crc = crc32c(0, bytes, offsetof(struct superblock, fixed_crc));
    memcpy(bytes + offsetof(struct superblock, fixed_crc), &crc, sizeof crc);
    spit(bytes, size);
    struct store_reader *r;
    struct error e = {0};
    assert_int_equal(store_reader_open(fixture_path, &r, &e), -ENOTSUP);
    assert_non_null(strstr(e.text, "version 3."));
    bytes[offsetof(struct superblock, major)]--;
    char *minor = &bytes[offsetof(struct superblock, minor)];
    *minor = (char)(*minor + 7); // newer, but compatible
    crc = crc32c(0, bytes, offsetof(struct superblock, fixed_crc));
    memcpy(bytes + offsetof(struct superblock, fixed_crc), &crc, sizeof crc);
    spit(bytes, size);
    struct outcome x = read_all();
    assert_true(x.opened && !x.missing);
    free(bytes);
}

static void damage_costs_one_block(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"), id = series_numbered(s, m, 0), set;
    assert_int_equal(store_define_set(s, &id, 1, &set), 0);
    for (int64_t t = 0; t < 3000; t++) {
        double v = value_of(0, t);
        assert_int_equal(store_append_row(s, set, t, &v), 0);
    }
    store_seal(s);
    store_abandon(s);
    size_t size;
    char *bytes = slurp(&size);
    size_t blocks[3], n = 0;
    for (size_t at = 0; at + 4 <= size; at += 8) {
        uint32_t magic;
        memcpy(&magic, bytes + at, sizeof magic);
        if (magic == BLOCK_MAGIC && n < 3)
            blocks[n++] = at;
    }
    assert_int_equal(n, 3);
    bytes[blocks[2] - 12] ^= 1; // at the end of the second one
    spit(bytes, size);
    struct store_reader *r = open_reader();
    struct store_snapshot *snap = store_snapshot_open(r);
    struct points p = points_of(snap, 0, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 3000 - 1024);
    points_free(&p);
    store_snapshot_close(snap);
    struct store_damage damage;
    store_reader_damage(r, &damage);
    assert_int_equal(damage.blocks, 1);
    assert_int_equal(damage.bytes, blocks[2] - blocks[1]);
    store_reader_close(r);
    struct store_inspection in;
    struct error e = {0};
    assert_int_equal(store_inspect(fixture_path, &in, &e), 0);
    assert_int_equal(in.damage.blocks, 1);
    assert_int_equal(in.values, 3000 - 1024);
    free(bytes);
}

// ── Tails: the notes of syncs ────────────────────────────────────────────────────────────────────

enum { SYNCED = 50, APPENDED = 70 };

static struct points all_points(struct store_reader *r, uint32_t series)
{
    struct store_snapshot *s = store_snapshot_open(r);
    assert_non_null(s);
    struct points p = points_of(s, series, INT64_MIN, INT64_MAX);
    store_snapshot_close(s);
    return p;
}

// Checks that exactly the first rows and points are there, and whether damage is reported.
static void expect_tails(size_t rows, size_t points, bool report)
{
    struct store_reader *r = open_reader();
    for (uint32_t id = 0; id < 2; id++) {
        struct points p = all_points(r, id);
        assert_int_equal(p.count, id ? points : rows);
        for (size_t i = 0; i < p.count; i++)
            assert_true(p.t[i] == (int64_t)i && p.v[i] == value_of(id, (int64_t)i));
        points_free(&p);
    }
    struct store_damage damage;
    store_reader_damage(r, &damage);
    assert_int_equal(damage.blocks > 0, report);
    assert_int_equal(damage.first[0] != 0, report);
    store_reader_close(r);
}

static void append_to_tails(struct store *s, uint32_t set, uint32_t single, int64_t from,
                            int64_t to)
{
    for (int64_t t = from; t < to; t++) {
        assert_int_equal(store_append_row(s, set, t, &(double){value_of(0, t)}), 0);
        assert_int_equal(store_append(s, single, t, value_of(1, t)), 0);
    }
}

// Makes a file with two tails, with SYNCED of APPENDED rows and points synced; returns their
// positions.
static char *make_tails(size_t *size, uint32_t *set, struct extent_entry tails[2],
                        size_t entries[2])
{
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"),
             ids[2] = {series_numbered(s, m, 0), series_numbered(s, m, 1)};
    assert_int_equal(store_define_set(s, ids, 1, set), 0);
    append_to_tails(s, *set, ids[1], 0, SYNCED);
    assert_int_equal(store_sync(s, NULL), 0);
    append_to_tails(s, *set, ids[1], SYNCED, APPENDED);
    store_abandon(s);
    char *bytes = slurp(size);
    struct superblock sb;
    memcpy(&sb, bytes, sizeof sb);
    for (uint32_t i = 0; i < sb.table_count; i++) {
        size_t at = sb.table_offset + i * sizeof(struct extent_entry);
        struct extent_entry e;
        memcpy(&e, bytes + at, sizeof e);
        if (e.kind == EXTENT_SET_TAIL || e.kind == EXTENT_POINT_TAIL) {
            tails[e.kind == EXTENT_POINT_TAIL] = e;
            entries[e.kind == EXTENT_POINT_TAIL] = at;
        }
    }
    return bytes;
}

static void notes_of_a_killed_writer(void **state)
{
    (void)state;
    size_t size, entries[2];
    uint32_t set;
    struct extent_entry tails[2];
    char *bytes = make_tails(&size, &set, tails, entries);
    expect_tails(APPENDED, APPENDED, false);
    // A bit of a synced row.
    size_t row = tails[0].offset + 10 * 16 + 8,
           point = tails[1].offset + 10 * sizeof(struct point_record) + 16;
    poke(row, (char)(bytes[row] ^ 4));
    expect_tails(0, APPENDED, true);
    poke(row, bytes[row]);
    poke(point, (char)(bytes[point] ^ 4));
    expect_tails(APPENDED, 0, true);
    poke(point, bytes[point]);
    // A tail with fewer bytes than a sync has noted, and one with more than it has room for.
    size_t used = entries[0] + offsetof(struct extent_entry, used);
    poke(used, 20);
    expect_tails(SYNCED, APPENDED, true);
    poke(used, bytes[used]);
    expect_tails(APPENDED, APPENDED, false);
    free(bytes);
}

// `used` had reached the disk, the rows had not: the bytes in their place are not rows.
static void torn_tails_of_another_boot(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, "test");
    size_t size, entries[2];
    uint32_t set;
    struct extent_entry tails[2];
    char *bytes = make_tails(&size, &set, tails, entries);
    bytes[offsetof(struct superblock, boot_id)] ^= 1;
    memset(bytes + tails[0].offset + SYNCED * 16, 0x5a, (APPENDED - SYNCED) * 16);
    memset(bytes + tails[1].offset + SYNCED * sizeof(struct point_record), 0,
           20 * sizeof(struct point_record));
    spit(bytes, size);
    expect_tails(SYNCED, SYNCED, true);
    // A reader that has the file open sees the next writer's data.
    struct store_reader *r = open_reader();
    struct points p = all_points(r, 0);
    assert_int_equal(p.count, SYNCED);
    points_free(&p);
    struct store *s = open_with(NULL);
    append_to_tails(s, set, 1, SYNCED, SYNCED + 3);
    p = all_points(r, 0);
    assert_int_equal(p.count, SYNCED + 3);
    assert_true(p.v[SYNCED] == value_of(0, SYNCED));
    points_free(&p);
    store_reader_close(r);
    store_abandon(s);
    // Also torn within the synced part: the note is invalid.
    bytes[tails[0].offset + 3 * 16] ^= 1;
    spit(bytes, size);
    expect_tails(0, SYNCED, true);
    free(bytes);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup_in_memory, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(bits_of_a_closed_file),
        CASE(bits_of_a_live_file),
        CASE(every_length),
        CASE(not_a_store),
        CASE(another_version),
        CASE(damage_costs_one_block),
        CASE(notes_of_a_killed_writer),
        CASE(torn_tails_of_another_boot),
    };
    return cmocka_run_group_tests_name("store damage", tests, NULL, NULL);
}
