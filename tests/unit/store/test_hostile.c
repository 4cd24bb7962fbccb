// Files that were made to harm the writer, with valid checksums and invalid contents: it checks
// them like the reader.
#include "fixture.h"

#include "base/hash.h"
#include "store/catalog.h"
#include "store/inspect.h"
#include "store/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SERIES = 3, NEW_POINTS = 3000 };

// The file of a killed writer: one metric, three series, two sets, a row of each, a point, a span.
static void make_killed(void)
{
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"), ids[SERIES], set, other;
    for (unsigned i = 0; i < SERIES; i++)
        ids[i] = series_numbered(s, m, i);
    assert_int_equal(store_define_set(s, ids, 2, &set), 0);
    assert_int_equal(store_define_set(s, &ids[1], 1, &other), 0);
    double row[2] = {1, 2};
    assert_int_equal(store_append_row(s, set, 5, row), 0);
    assert_int_equal(store_append_row(s, other, 6, row), 0);
    assert_int_equal(store_append(s, ids[2], 6, 3), 0);
    struct store_event e = {.kind = STORE_SPAN, .end_ns = 9, .text = STR("span"), .id = 1};
    assert_int_equal(store_append_event(s, &e), 0);
    store_abandon(s);
}

struct image {
    uint8_t *base;
    size_t size;
};

static struct image open_image(void)
{
    int fd = open(fixture_path, O_RDWR);
    struct stat st;
    assert_true(fd >= 0 && !fstat(fd, &st));
    void *base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(base != MAP_FAILED);
    close(fd);
    return (struct image){base, (size_t)st.st_size};
}

static struct superblock *super_of(const struct image *m)
{
    return (struct superblock *)(void *)m->base;
}

static struct extent_entry *entry_of(const struct image *m, enum extent_kind kind)
{
    struct extent_entry *table =
        (struct extent_entry *)(void *)(m->base + super_of(m)->table_offset);
    for (uint32_t i = 0; i < super_of(m)->table_count; i++)
        if (table[i].kind == kind)
            return &table[i];
    fail_msg("no entry of kind %d", (int)kind);
    return NULL;
}

static void mend(struct extent_entry *e)
{
    e->check = crc32c(crc32c(0, &e->kind, 12), &e->offset, 24);
}

static void close_image(struct image *m)
{
    munmap(m->base, m->size);
}

// In a child, because the test is whether the writer survives: opens, writes, closes. 0: continued
// the file; 1: refused it; -1: died.
static int write_on(void)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        log_setup(LOG_ERROR, "child");
        struct store *s;
        struct error e = {0};
        if (store_open(fixture_path, NULL, &s, &e))
            _exit(e.text[0] ? 1 : 2);
        struct store_metric m = {.name = STR("m")};
        struct store_label label = {STR("n"), STR("9")};
        uint32_t metric, id, set;
        if (store_define_metric(s, &m, &metric) || store_define_series(s, metric, &label, 1, &id) ||
            store_define_set(s, &id, 1, &set))
            _exit(3);
        for (int64_t t = 0; t < NEW_POINTS; t++) {
            double v = 1;
            store_append(s, id, t, 2);
            store_append_row(s, set, t + NEW_POINTS, &v);
            store_append_event(s, &(struct store_event){
                                      .kind = STORE_SPAN, .end_ns = 9, .text = STR("x"), .id = 2});
        }
        store_tick(s, INT64_C(1) << 60);
        store_close(s, NULL);
        struct store_inspection in;
        _exit(store_inspect(fixture_path, &in, &e) ? 4 : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Adds an entry after those of the catalog.
static void add_catalog_entry(const struct buf *b)
{
    struct image m = open_image();
    struct extent_entry *e = entry_of(&m, EXTENT_CATALOG);
    assert_true(e->size - e->used >= b->size);
    memcpy(m.base + e->offset + e->used, b->data, b->size);
    e->used += b->size;
    close_image(&m);
}

static void refuses_entry(struct buf *b)
{
    make_killed();
    add_catalog_entry(b);
    assert_int_equal(write_on(), 1);
    // The reader shows the entries before it, and reports damage.
    struct store_reader *r = open_reader();
    struct store_snapshot *s = store_snapshot_open(r);
    assert_non_null(s);
    assert_int_equal(store_series_count(s), SERIES);
    struct points p = points_of(s, 2, INT64_MIN, INT64_MAX);
    assert_int_equal(p.count, 1);
    points_free(&p);
    struct store_damage damage;
    store_reader_damage(r, &damage);
    assert_int_equal(damage.blocks, 1);
    store_snapshot_close(s);
    store_reader_close(r);
    buf_free(b);
}

static void set_of_unknown_series(void **state)
{
    (void)state;
    struct buf b = {0};
    catalog_put_set(&b, (uint32_t[]){0, 50000000}, 2);
    refuses_entry(&b);
}

static void series_of_unknown_metric(void **state)
{
    (void)state;
    struct buf b = {0};
    catalog_put_series(&b, 77, (uint32_t[]){0}, 1);
    refuses_entry(&b);
}

static void series_of_unknown_pair(void **state)
{
    (void)state;
    struct buf b = {0};
    catalog_put_series(&b, 0, (uint32_t[]){4000000000u}, 1);
    refuses_entry(&b);
}

static void extent_of_no_bytes(void **state)
{
    (void)state;
    make_killed();
    struct image m = open_image();
    // The extent lies between two others, so that no gap beside it hides its missing size.
    struct extent_entry *e = entry_of(&m, EXTENT_SET_TAIL);
    e->offset = entry_of(&m, EXTENT_POINT_TAIL)->offset;
    e->size = e->used = 0;
    mend(e);
    close_image(&m);
    assert_int_equal(write_on(), 0);
}

// An extent that begins before the table and overlaps it: writing into it would overwrite the
// table.
static void extent_over_the_table(void **state)
{
    (void)state;
    enum { SETS = 20 }; // more than the entries in the header
    make_killed();
    struct store *s = open_with(NULL);
    uint32_t metric = metric_named(s, "many");
    for (unsigned i = 0; i < SETS; i++) {
        uint32_t id = series_numbered(s, metric, i), set;
        double v = 1;
        assert_int_equal(store_define_set(s, &id, 1, &set), 0);
        assert_int_equal(store_append_row(s, set, 1, &v), 0);
    }
    store_abandon(s);
    struct image m = open_image();
    uint64_t table_at = super_of(&m)->table_offset,
             table_bytes = super_of(&m)->table_capacity * sizeof(struct extent_entry);
    assert_true(table_at >= LAYOUT_HEADER_BYTES);
    struct extent_entry *catalog = entry_of(&m, EXTENT_CATALOG),
                        *tail = entry_of(&m, EXTENT_POINT_TAIL);
    struct extent_entry *table = (struct extent_entry *)(void *)(m.base + table_at);
    // The extent's place is otherwise unused.
    for (uint32_t i = 0; i < super_of(&m)->table_count; i++)
        if (&table[i] != catalog && &table[i] != tail) {
            table[i] = (struct extent_entry){.generation = 9};
            mend(&table[i]);
        }
    tail->offset = catalog->offset + catalog->size;
    tail->size = table_at + table_bytes - tail->offset + 8 * sizeof(struct point_record);
    tail->used = (table_at - tail->offset) / sizeof(struct point_record);
    memset(tail->synced, 0, sizeof tail->synced);
    mend(tail);
    close_image(&m);
    assert_int_equal(write_on(), 0);
    struct store_inspection in;
    assert_int_equal(store_inspect(fixture_path, &in, NULL), 0);
    assert_int_equal(in.damage.blocks, 0);
    assert_int_equal(in.values, 2 * NEW_POINTS);
}

static void table_half_in_the_header(void **state)
{
    (void)state;
    make_killed();
    struct image m = open_image();
    super_of(&m)->table_offset = sizeof(struct superblock) + 8;
    close_image(&m);
    assert_int_equal(write_on(), 1);
}

// `used` of a tail of events is not a multiple of 8, and its bytes are not events.
static void malformed_events_are_damage(void **state)
{
    (void)state;
    make_killed();
    struct image m = open_image();
    struct extent_entry *e = entry_of(&m, EXTENT_EVENT_TAIL);
    memset(m.base + e->offset + e->used, 0x5a, 2001);
    e->used += 2001;
    close_image(&m);
    assert_int_equal(write_on(), 0);
    struct store_inspection in;
    assert_int_equal(store_inspect(fixture_path, &in, NULL), 0);
    assert_int_equal(in.damage.blocks, 0);
    assert_int_equal(in.events, 2); // its own event, and the one written since
}

// A closed file whose last extent is its packed catalog, of any size: a writer aligns the extents
// after it.
static void extents_stay_aligned(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 8; n++) {
        close_store(open_with(NULL));
        struct store *s = open_with(NULL);
        uint32_t id = series_numbered(s, metric_named(s, "m"), n);
        assert_int_equal(store_append(s, id, 1, 1), 0);
        store_abandon(s);
        struct image m = open_image();
        assert_int_equal(entry_of(&m, EXTENT_POINT_TAIL)->offset % 8, 0);
        close_image(&m);
        s = open_with(NULL);
        metric_named(s, (const char[]){(char)('a' + (int)n), 0});
        close_store(s);
        s = open_with(NULL);
        assert_int_equal(store_append(s, id, 2, 2), 0);
        store_abandon(s);
        m = open_image();
        assert_int_equal(entry_of(&m, EXTENT_POINT_TAIL)->offset % 8, 0);
        close_image(&m);
    }
}

// ── Other files ──────────────────────────────────────────────────────────────────────────────────

// Opening must not wait for the other end of a FIFO.
static void fifo_and_device(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(fixture_path, 0600), 0);
    struct store_reader *r;
    struct store *s;
    struct error e = {0};
    alarm(10); // kills the test if opening blocks
    assert_int_equal(store_reader_open(fixture_path, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a regular file"));
    assert_int_equal(store_open(fixture_path, NULL, &s, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a regular file"));
    assert_int_equal(store_reader_open("/dev/zero", &r, &e), -EINVAL);
    assert_int_equal(store_reader_open(fixture_folder, &r, &e), -EINVAL);
    alarm(0);
}

// The path is a link: the writer follows it only if the caller's own folder protects it.
static void planted_link(void **state)
{
    (void)state;
    char secret[128];
    snprintf(secret, sizeof secret, "%s/secret", fixture_folder);
    int fd = open(secret, O_CREAT | O_WRONLY | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(symlink(secret, fixture_path), 0);
    struct store *s;
    struct error e = {0};
    struct store_options o = {.new_file = true};
    assert_int_equal(store_open(fixture_path, &o, &s, &e), -EEXIST);
    struct stat st;
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(st.st_size, 0);
    unlink(secret);
}

// ── The same series twice ────────────────────────────────────────────────────────────────────────

static void series_twice_in_a_set(void **state)
{
    (void)state;
    struct store *s = open_with(NULL);
    uint32_t m = metric_named(s, "m"), a = series_numbered(s, m, 0), b = series_numbered(s, m, 1),
             set;
    assert_int_equal(store_define_set(s, (uint32_t[]){a, b, a}, 3, &set), -EINVAL);
    assert_int_equal(store_define_set(s, (uint32_t[]){b, b}, 2, &set), -EINVAL);
    struct store_stats stats;
    store_get_stats(s, &stats);
    assert_int_equal(stats.refused_invalid, 2);
    assert_int_equal(stats.sets, 0);
    assert_int_equal(store_define_set(s, (uint32_t[]){b, a}, 2, &set), 0);
    close_store(s);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(set_of_unknown_series),
        CASE(series_of_unknown_metric),
        CASE(series_of_unknown_pair),
        CASE(extent_of_no_bytes),
        CASE(extent_over_the_table),
        CASE(table_half_in_the_header),
        CASE(malformed_events_are_damage),
        CASE(extents_stay_aligned),
        CASE(fifo_and_device),
        CASE(planted_link),
        CASE(series_twice_in_a_set),
    };
    return cmocka_run_group_tests_name("store hostile", tests, NULL, NULL);
}
