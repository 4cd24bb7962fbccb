#include "base/clock.h"
#include "cli/top_feed.h"
#include "cli/top_view.h"
#include "faces/native/binary.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t END_NS = INT64_C(1795402800) * NS_PER_S; // 2026-11-23 03:00:00 UTC
static const struct {
    int columns, rows;
} sizes[] = {{80, 24}, {120, 40}, {300, 100}};
enum { SIZES = sizeof sizes / sizeof sizes[0], NODES = 30 };

// Values that go up and down, different for each row and column, without a library's rounding.
static double value_of(size_t row, size_t column, bool percent, int64_t bucket)
{
    int64_t wave = (bucket + (int64_t)(7 * row + 3 * column)) % 20;
    double share = (double)(wave < 10 ? wave : 20 - wave) / 10;
    return percent ? 20 + 3 * (double)(row % 20) + 20 * share
                   : (1 + share) * 1048576 * (double)(row + 1);
}

static void fill(struct top_table *t, size_t row_index, const char *name, const char *unit)
{
    struct top_row *row = top_table_row(t, str_of(name), name);
    int64_t newest = END_NS / t->bucket_ns;
    assert_non_null(row);
    top_table_advance(t, newest);
    row->unit = unit;
    for (size_t c = 0; c < t->column_count; c++) {
        const char *own = t->columns[c].unit;
        bool percent = !own || strcmp(own, "bytes") != 0;
        for (int64_t b = newest - TOP_BUCKETS + 1; b <= newest; b++)
            if (!(row_index == 3 && b > newest - 20)) // node 3 has said nothing for 20 s
                top_table_put(t, row, c, b, value_of(row_index, c, percent, b));
    }
}

static void make_job(struct top_model *m)
{
    top_model_create(m);
    m->job = (struct top_job){.id = "train-17",
                              .command = "python3 train.py --epochs 90",
                              .nodes = NODES,
                              .level = 3,
                              .live = true,
                              .points = 1234567,
                              .start_ns = END_NS - INT64_C(3725) * NS_PER_S,
                              .first_ns = END_NS - INT64_C(3725) * NS_PER_S,
                              .last_ns = END_NS};
}

static void make_nodes(struct top_model *m)
{
    make_job(m);
    for (size_t i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, i == 5 ? "n6\033[2J" : "n%zu", i + 1);
        fill(&m->tables[0], i, name, "percent");
    }
}

// The lines of golden/NAME; a difference names the line.
static void assert_golden(const char *name, struct buf *picture)
{
    char path[4096];
    struct buf golden = {0};
    snprintf(path, sizeof path, "%s/%s", getenv("GOLDEN"), name);
    if (getenv("SONDE_TEST_UPDATE")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(picture->data, 1, picture->size, file), picture->size);
        fclose(file);
    }
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        buf_add_char(&golden, (char)c);
    fclose(file);
    struct str a = buf_str(picture), b = buf_str(&golden);
    for (int line = 1; a.data || b.data; line++) {
        struct str x = str_cut(&a, '\n'), y = str_cut(&b, '\n');
        if (!str_eq(x, y))
            fail_msg("%s:%d\nis     %.*s\nshould %.*s", name, line, STR_ARG(x), STR_ARG(y));
    }
    buf_free(&golden);
}

static void assert_picture(const char *name, struct top_model *m, int columns, int rows, bool utf8,
                           bool colour)
{
    struct screen s;
    struct buf picture = {0};
    assert_int_equal(screen_create(&s, columns, rows, utf8), 0);
    top_view_draw(&s, m);
    screen_plain(&picture, &s, colour);
    assert_golden(name, &picture);
    buf_free(&picture);
    screen_free(&s);
}

static void nodes_in_all_sizes(void **state)
{
    (void)state;
    struct top_model m;
    make_nodes(&m);
    for (size_t i = 0; i < SIZES; i++) {
        char name[64];
        snprintf(name, sizeof name, "top-nodes-%dx%d.txt", sizes[i].columns, sizes[i].rows);
        assert_picture(name, &m, sizes[i].columns, sizes[i].rows, true, false);
    }
    assert_picture("top-nodes-colour.txt", &m, 80, 24, true, true);
    assert_picture("top-nodes-ascii.txt", &m, 80, 24, false, false);
    m.sort = 0;
    m.descending = true;
    m.selected = NODES - 1; // scrolls; the node without values comes last
    snprintf(m.job.trouble, sizeof m.job.trouble, "no answer since 03:00:00: connection refused");
    assert_picture("top-nodes-sorted.txt", &m, 80, 24, true, false);
    top_model_free(&m);
}

static void the_other_views(void **state)
{
    (void)state;
    struct top_model m;
    make_job(&m);
    assert_picture("top-empty.txt", &m, 80, 24, true, false);
    m.help = true;
    assert_picture("top-help.txt", &m, 80, 24, true, false);
    m.help = false;
    top_model_show(&m, TOP_NODE, "n1");
    fill(&m.tables[0], 0, "gpu 0", "percent");
    fill(&m.tables[0], 1, "gpu 1", "percent");
    fill(&m.tables[2], 2, "4711 python3", "");
    fill(&m.tables[3], 4, "loss", "");
    fill(&m.tables[3], 5, "sent", "bytes");
    m.job.missing_count = 2;
    snprintf(m.job.missing, sizeof m.job.missing, "n7 (late), n9 (not connected)");
    assert_picture("top-node.txt", &m, 80, 24, true, false);
    top_model_show(&m, TOP_EVENTS, NULL);
    m.event_count = 2;
    m.events[0] = (struct top_event){.text = "epoch",
                                     .node = "n1",
                                     .tags = "rank=0",
                                     .process = "0",
                                     .start_ns = END_NS - INT64_C(95) * NS_PER_S};
    m.events[1] = (struct top_event){.text = "rate\nhalved",
                                     .node = "n2",
                                     .tags = "rank=3",
                                     .process = "3",
                                     .start_ns = END_NS - INT64_C(60) * NS_PER_S,
                                     .annotation = true};
    m.at_ns = END_NS;
    m.paused = true;
    m.job.ended = true;
    m.job.exit_code = 3;
    assert_picture("top-events.txt", &m, 80, 24, true, false);
    top_model_free(&m);
}

static void filter_and_order(void **state)
{
    (void)state;
    struct top_model m;
    size_t order[NODES];
    const struct top_table *t;
    make_nodes(&m);
    assert_int_equal(top_table_order(&m, &m.tables[0], order), NODES);
    assert_string_equal(m.tables[0].rows[order[1]].name, "n2"); // not n10
    strcpy(m.filter, "N1");
    assert_int_equal(top_table_order(&m, &m.tables[0], order), 11); // n1, n10 to n19
    m.sort = 0;
    m.descending = true;
    assert_int_equal(top_table_order(&m, &m.tables[0], order), 11);
    for (int i = 1; i < 11; i++)
        assert_true(top_table_last(&m.tables[0], &m.tables[0].rows[order[i - 1]], 0) >=
                    top_table_last(&m.tables[0], &m.tables[0].rows[order[i]], 0));
    m.filter[0] = 0;
    top_table_order(&m, &m.tables[0], order);
    // no value: last in both directions
    assert_string_equal(m.tables[0].rows[order[NODES - 1]].name, "n4");
    m.descending = false;
    top_table_order(&m, &m.tables[0], order);
    assert_string_equal(m.tables[0].rows[order[NODES - 1]].name, "n4");
    m.selected = NODES - 1;
    assert_string_equal(top_model_selected(&m, &t)->name, "n4");
    top_model_free(&m);
}

// A value that is too old is none; what leaves the window is forgotten.
static void time_goes_on(void **state)
{
    (void)state;
    struct top_model m;
    double history[TOP_BUCKETS];
    top_model_create(&m);
    struct top_table *t = &m.tables[0];
    struct top_row *row = top_table_row(t, STR("n1"), "n1");
    top_table_advance(t, 1000);
    top_table_put(t, row, 0, 1000, 42);
    top_table_put(t, row, 0, 900, 7); // before the window
    for (int64_t b = 1000; b < 1015; b++) {
        top_table_advance(t, b);
        assert_float_equal(top_table_last(t, row, 0), 42, 0);
    }
    top_table_advance(t, 1015);
    assert_true(isnan(top_table_last(t, row, 0)));
    top_table_history(t, row, 0, TOP_BUCKETS, history);
    assert_float_equal(history[TOP_BUCKETS - 16], 42, 0);
    top_table_advance(t, 1060);
    assert_false(top_table_has(t, 0));
    top_model_free(&m);
}

// ---------------------------------------------------------------- answers

static void answer(struct buf *out)
{
    static const int64_t times[] = {100000000000, 101000000000, 102000000000};
    static const double cpu[] = {10, 20, 30}, received[] = {1, 2, 3};
    static const struct store_label host[] = {{STR("host"), STR("n1")}};
    struct store_metric gauge = {.name = STR("cpu_percent"),
                                 .unit = STR("percent"),
                                 .kind = STORE_GAUGE},
                        counter = {.name = STR("network_receive_bytes_total"),
                                   .unit = STR("bytes"),
                                   .kind = STORE_COUNTER};
    struct query_series s = {.metric = gauge.name,
                             .tags = host,
                             .tag_count = 1,
                             .t_ns = times,
                             .values = cpu,
                             .count = 3,
                             .source_series = 1};
    native_binary_begin(out);
    native_binary_series(out, 0, &s, &gauge, false, 0);
    s.metric = counter.name;
    s.values = received;
    native_binary_series(out, 1, &s, &counter, true, 0);
    native_binary_end(out, 2, 6, 6);
}

// As `sonde top` reads an answer.
static int take(struct top_table *t, const size_t *columns, const char *const *rows, size_t queries,
                struct str text)
{
    // Of its own size: what lies behind it is not read.
    struct buf body = {.data = malloc(text.size + 1), .size = text.size, .capacity = text.size + 1};
    struct http_answer answer = {.body = body};
    struct sonde_result *result;
    struct error e;
    memcpy(body.data, text.data, text.size);
    int rc = result_read(&answer, &result, &e);
    if (rc)
        return rc;
    rc = top_feed_take(t, columns, rows, queries, result);
    sonde_result_free(result);
    return rc;
}

static void answers_are_read(void **state)
{
    (void)state;
    static const size_t columns[] = {0, 2};
    static const char *const rows[] = {NULL, NULL};
    struct top_model m;
    struct buf text = {0};
    answer(&text);
    top_model_create(&m);
    assert_int_equal(take(&m.tables[0], columns, rows, 2, buf_str(&text)), 0);
    assert_int_equal(m.tables[0].count, 1);
    assert_string_equal(m.tables[0].rows[0].name, "n1");
    assert_float_equal(top_table_last(&m.tables[0], &m.tables[0].rows[0], 0), 30, 0);
    // the newest is only a part
    assert_float_equal(top_table_last(&m.tables[0], &m.tables[0].rows[0], 2), 2, 0);
    assert_int_equal(take(&m.tables[0], columns, rows, 1, buf_str(&text)),
                     -EBADMSG); // a query that was not asked
    top_model_free(&m);
    // Nothing in an answer is believed: every cut is refused, and every flipped bit is survived.
    for (size_t size = 0; size < text.size; size++) {
        top_model_create(&m);
        assert_int_equal(take(&m.tables[0], columns, rows, 2, str_slice(buf_str(&text), 0, size)),
                         -EBADMSG);
        top_model_free(&m);
    }
    for (size_t bit = 0; bit < text.size * 8; bit++) {
        text.data[bit / 8] ^= (char)(1 << bit % 8);
        top_model_create(&m);
        take(&m.tables[0], columns, rows, 2, buf_str(&text));
        top_model_free(&m);
        text.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_in_all_sizes), cmocka_unit_test(the_other_views),
        cmocka_unit_test(filter_and_order), cmocka_unit_test(time_goes_on),
        cmocka_unit_test(answers_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
