// A second copy transfers only new data, and the result equals the node's file.
#include "ask/copy_sums.h"
#include "ask/numbers.h"
#include "two_files.h"
#include "unit/wire/world.h"

#include <errno.h>
#include <math.h>

static void only_new_data_are_transferred(void **state)
{
    struct world *w = *state;
    struct ask_copy_file first = copy(w);
    assert_int_equal(first.way, ASK_COPY_WHOLE);
    assert_int_equal(same(w), POINTS);
    append(w, POINTS / 100);
    uint64_t before = net_stats(w->hub).bytes_in;
    struct ask_copy_file second = copy(w);
    assert_int_equal(second.way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + POINTS / 100);
    // One or two of 256 slices, and 1 % new points.
    assert_in_range(second.points, POINTS / 100, POINTS / 50);
    assert_true(second.received_bytes < first.received_bytes / 20);
    assert_in_range(net_stats(w->hub).bytes_in - before, second.received_bytes,
                    second.received_bytes + 5000);
    // Nothing new.
    struct ask_copy_file third = copy(w);
    assert_int_equal(third.way, ASK_COPY_UNCHANGED);
    assert_int_equal(third.points, 0);
    assert_true(third.received_bytes < 1000);
    assert_int_equal(same(w), POINTS + POINTS / 100);
}

static void late_points_and_new_definitions_are_transferred(void **state)
{
    struct world *w = *state;
    copy(w);
    // Points between others and before all, a replaced value, a new series, a new metric, a span
    // that has ended, and an older span.
    store_append(w->store, w->series[0], 12345 * 1000 + 1, 7);
    store_append(w->store, w->series[1], 3, 8);
    store_append(w->store, w->series[2], 2002 * 1000, -9);
    store_append(w->store, world_series(w, "e"), 1000, 1);
    store_define_metric(w->store, &(struct store_metric){.name = STR("n")}, &w->metric);
    store_append(w->store, world_series(w, "a"), 50 * 1000 * 1000, 1);
    span(w, 50, (int64_t)50 * POINTS * 20, INT64_MAX - 1);
    span(w, 51, 77, 78);
    struct ask_copy_file second = copy(w);
    assert_int_equal(second.way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + 4);
    assert_true(second.points < POINTS / 10);
    // A unit that was unknown before changes all definitions.
    store_define_metric(w->store, &(struct store_metric){.name = STR("n"), .unit = STR("s")},
                        &w->metric);
    assert_int_equal(copy(w).way, ASK_COPY_WHOLE);
    assert_int_equal(same(w), POINTS + 4);
}

// Extreme values and times are equal bit by bit; several rounds, because data at the end of time
// stay in the last slice.
static void points_at_the_ends_of_the_range_are_kept(void **state)
{
    static const uint64_t bits[] = {
        0x8000000000000000, 0x7ff8000000000001, 0xfff8000000000000,
        0x7ff0000000000000, 0xfff0000000000000, 1,
        0x7ff0000000000001, 0x7fefffffffffffff, STORE_MISSING_BITS ^ (1 << 9)};
    struct world *w = *state;
    uint64_t points = POINTS;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        double value;
        memcpy(&value, &bits[i], sizeof value);
        store_append(w->store, w->series[i % WORLD_SERIES], (int64_t)i * 1000 + 1, value);
        store_append(w->store, w->series[i % WORLD_SERIES], INT64_MAX - (int64_t)i, value);
        points += 2;
        if (i % 3 == 0) {
            copy(w);
            assert_int_equal(same(w), points);
        }
    }
}

static void each_copy_transfers_less(void **state)
{
    struct world *w = *state;
    for (int64_t i = 1; i <= 3; i++) {
        struct ask_copy_file f = copy_since(w, i * 1000 * 10000);
        assert_null(f.problem);
        assert_int_equal(f.way, i == 1 ? ASK_COPY_WHOLE : ASK_COPY_UPDATED);
        assert_int_equal(same_since(w, i * 1000 * 10000), POINTS - i * 10000);
        assert_true(i == 1 || f.points < POINTS / 100);
    }
    // More points are appended.
    assert_int_equal(copy(w).way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS);
}

static int give_up(void *user, struct error *e)
{
    return ++*(int *)user > 3 ? error_set(e, -ECONNRESET, "nobody waits") : 0;
}

// Cancelling works while the old file is summed, or taken over.
static void a_copy_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct error e;
    int looks = 0;
    struct work_watch watch = {
        .look = give_up, .hold = hold_anything, .release = release_anything, .user = &looks};
    struct hub_where where = {.deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .watch = &watch};
    struct ask_copy_options o = {.folder = w->to, .job = STR("7"), .to_ns = INT64_MAX};
    struct ask_copied copied;
    copy(w);
    append(w, 1);
    assert_int_equal(hub_copy(w->hub, STR(""), &o, &where, &w->arena, &copied, &e), -ECONNRESET);
    assert_string_equal(e.text, "nobody waits");
    assert_int_equal(copy(w).way, ASK_COPY_UPDATED);
    assert_int_equal(same(w), POINTS + 1);
}

static bool wants(void *user, struct str host)
{
    return str_eq(host, str_of(user));
}

static void each_node_gets_the_sums_of_its_own_files(void **state)
{
    struct world *w = *state;
    struct ask_copy_known known[] = {
        {.host = STR("n1"), .sums = STR("abc")},
        {.host = STR("n2"), .file = 1, .exact = true, .sums = STR("defg")},
        {.host = STR("n2"), .sums = STR("")}};
    struct ask_copy_request m = {.from_ns = -1, .to_ns = 1, .known = known, .known_count = 3}, read;
    struct buf all = {0}, own = {0};
    ask_copy_request_write(&m, &all);
    assert_int_equal(ask_copy_request_narrow(buf_str(&all), wants, "n2", &own), 0);
    assert_int_equal(ask_copy_request_read(buf_str(&own), &w->arena, &read), 0);
    assert_int_equal(read.from_ns, -1);
    assert_int_equal(read.known_count, 2);
    assert_str_equal(read.known[0].host, "n2");
    assert_str_equal(read.known[0].sums, "defg");
    assert_int_equal(read.known[0].file, 1);
    assert_true(read.known[0].exact && !read.known[1].exact);
    for (size_t size = 0; size < all.size; size++) {
        own.size = 0;
        struct str cut = {all.data, size};
        int r = ask_copy_request_read(cut, &w->arena, &read);
        assert_int_equal(ask_copy_request_narrow(cut, wants, "n2", &own), r);
    }
    buf_free(&all);
    buf_free(&own);
}

static int ignore(void *user, struct str host, struct str record)
{
    (void)user, (void)host, (void)record;
    return 0;
}

static uint64_t bytes_to_n1(struct world *w)
{
    const struct hub_node *nodes;
    size_t count;
    assert_int_equal(hub_nodes(w->hub, &w->arena, &nodes, &count), 0);
    assert_int_equal(count, 1);
    return nodes[0].bytes_out;
}

// The node leaves them out, however much the request contains about other nodes.
static void sums_of_other_nodes_are_not_sent(void **state)
{
    enum { MUCH = 100000 };
    struct world *w = *state;
    static char sums[MUCH];
    const struct wire_missing *missing;
    size_t count;
    struct error e;
    for (int own = 0; own < 2; own++) {
        struct ask_copy_known known = {.host = own ? STR("n1") : STR("n2"), .sums = {sums, MUCH}};
        struct ask_copy_request m = {
            .from_ns = INT64_MAX, .to_ns = INT64_MAX, .known = &known, .known_count = 1};
        struct buf request = {0};
        ask_copy_request_write(&m, &request);
        uint64_t before = bytes_to_n1(w);
        struct hub_ask ask = {.question = ASK_COPY,
                              .request = buf_str(&request),
                              .deadline_ns = clock_monotonic_ns() + NET_PATIENCE_NS,
                              .record = ignore};
        assert_int_equal(hub_ask(w->hub, &ask, &w->arena, &missing, &count, &e), 0);
        assert_int_equal(count, 0);
        assert_int_equal(bytes_to_n1(w) - before > MUCH, own);
        buf_free(&request);
    }
}

static void sums_read_back_as_written(void **state)
{
    struct world *w = *state;
    struct ask_copy_sums *ours = arena_zalloc(&w->arena, sizeof *ours),
                         *theirs = arena_zalloc(&w->arena, sizeof *theirs);
    struct ask_copy_kept kept;
    struct buf text = {0};
    struct wire_view view;
    struct error e;
    net_open_reader(&w->reader, &view, &e);
    assert_int_equal(
        ask_copy_sums_divide(view.stores[0], INT64_MIN, INT64_MAX, ASK_COPY_SLICES_MAX, ours), 0);
    assert_in_range(ours->count, 200, ASK_COPY_SLICES_MAX);
    struct ask_copy_look look;
    ask_copy_look_begin(&look, view.stores[0], INT64_MIN, INT64_MAX, 1, WORLD_SERIES, ours);
    while (ask_copy_look_step(&look) > 0)
        ;
    ask_copy_look_end(&look);
    uint64_t points = 0;
    for (uint32_t i = 0; i <= ours->count; i++) {
        assert_true(ours->point_count[i] < POINTS / 100); // evenly
        points += ours->point_count[i];
    }
    assert_int_equal(points, POINTS);
    ask_copy_sums_write(ours, &text);
    assert_true(text.size < 7000);
    assert_int_equal(ask_copy_sums_read(buf_str(&text), theirs), 0);
    assert_true(ask_copy_sums_compare(ours, theirs, &kept));
    theirs->points[17]++;
    assert_false(ask_copy_sums_compare(ours, theirs, &kept));
    struct ask_copy_stretch stretches[ASK_COPY_STRETCHES_MAX];
    assert_int_equal(ask_copy_stretches(ours, kept.points, false, INT64_MIN, INT64_MAX, stretches),
                     2);
    assert_int_equal(stretches[0].from_ns, ours->ends[16] + 1);
    assert_int_equal(stretches[0].to_ns, ours->ends[17]);
    assert_int_equal(stretches[1].from_ns, ours->ends[ours->count - 1] + 1);
    for (size_t size = 0; size < text.size; size++)
        assert_int_equal(ask_copy_sums_read((struct str){text.data, size}, theirs), -EBADMSG);
    buf_free(&text);
    net_close_reader(NULL, &view);
}

// The sum of many hashes, which processors compute in lanes, is that of single ones.
static void hashes_of_points_add_up(void **state)
{
    enum { COUNT = 40 };
    int64_t times[COUNT];
    double values[COUNT];
    uint64_t sum = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        times[i] = i % 3 ? INT64_MIN + i : i * INT64_C(1234567890123);
        values[i] = i % 5 ? -1.0 / (i + 1) : NAN;
    }
    for (size_t n = 0; n < COUNT; n++) {
        assert_true(ask_copy_points_hash(77, times, values, n) == sum);
        sum += ask_copy_point_hash(77, times[n], values[n]);
    }
}

// Chunks read back as written, also those whose sizes have one or two bytes, and those of a long
// column.
static void numbers_read_back_as_written(void **state)
{
    enum { MOST = 70000 };
    static const size_t counts[] = {1, 15, 16, 17, 2000, 2100, 65536, MOST};
    double *values = calloc(MOST, sizeof *values), *read = calloc(MOST, sizeof *read);
    uint64_t random = 88172645463325252;
    (void)state;
    assert_true(values && read);
    for (size_t i = 0; i < MOST; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        values[i] = (double)(random >> 11) * 0x1p-53;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct buf text = {0};
        buf_u8(&text, 'x');
        ask_numbers_write(values, counts[i], false, &text);
        buf_u8(&text, 'y');
        struct bytes b = bytes_of(text.data, text.size);
        assert_int_equal(bytes_u8(&b), 'x');
        assert_int_equal(ask_numbers_read(&b, read, counts[i], false), 0);
        assert_memory_equal(read, values, counts[i] * sizeof *values);
        assert_int_equal(bytes_u8(&b), 'y');
        assert_int_equal(bytes_left(&b), 0);
        buf_free(&text);
    }
    free(values);
    free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_new_data_are_transferred, set_up, world_end),
        cmocka_unit_test_setup_teardown(late_points_and_new_definitions_are_transferred, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(points_at_the_ends_of_the_range_are_kept, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(each_copy_transfers_less, set_up, world_end),
        cmocka_unit_test_setup_teardown(a_copy_can_be_cancelled, set_up, world_end),
        cmocka_unit_test(hashes_of_points_add_up),
        cmocka_unit_test(numbers_read_back_as_written),
        cmocka_unit_test_setup_teardown(each_node_gets_the_sums_of_its_own_files, set_up,
                                        world_end),
        cmocka_unit_test_setup_teardown(sums_of_other_nodes_are_not_sent, set_up, world_end),
        cmocka_unit_test_setup_teardown(sums_read_back_as_written, set_up, world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
