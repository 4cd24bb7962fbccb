#include "base/clock.h"
#include "cli/top_feed.h"
#include "cli/top_keys.h"
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

// Values that go up and down, different for each row and column, independent of a library's
// rounding.
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
            if (!(row_index == 3 && b > newest - 20)) // node 3 has been silent for 20 s
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

// Compares with the lines of golden/NAME; the message names the line that differs.
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
    m.selected = NODES - 1; // scrolls; the node without values is last
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

// ---------------------------------------------------------------- findings, ranks, spans

static void add_finding(struct top_model *m, const char *member, const char *host, const char *gpu,
                        const char *rank, bool now)
{
    m->findings[m->finding_count++] =
        (struct top_finding){.member = member,
                             .what = "step_seconds",
                             .host = host,
                             .gpu = gpu,
                             .rank = rank,
                             .against = now ? "others" : "own best",
                             .now = now,
                             .factor = now ? 1.62 : 1.3 + (double)m->finding_count,
                             .since_ns = END_NS - INT64_C(90) * NS_PER_S,
                             .until_ns = END_NS - INT64_C(30) * NS_PER_S,
                             .rounds = 12};
    m->slow_count += now;
}

static void add_silent(struct top_model *m)
{
    m->findings[m->finding_count++] =
        (struct top_finding){.member = "rank 7 on n4",
                             .what = "step_seconds",
                             .host = "n4",
                             .gpu = "",
                             .rank = "7",
                             .against = "",
                             .now = true,
                             .silent = true,
                             .factor = INFINITY,
                             .since_ns = END_NS - INT64_C(60) * NS_PER_S,
                             .until_ns = END_NS,
                             .rounds = 30};
    m->silent_count++;
}

static void make_findings(struct top_model *m)
{
    add_finding(m, "rank 1 on n1", "n1", "", "1", false);
    add_finding(m, "rank 3 on n2", "n2", "", "3", true);
    add_finding(m, "gpu 1 on n1", "n1", "1", "", true);
}

static void findings_are_listed(void **state)
{
    (void)state;
    struct top_model m;
    size_t order[TOP_FINDINGS_MAX];
    make_job(&m);
    top_model_show(&m, TOP_FINDINGS, NULL);
    assert_picture("top-no-findings.txt", &m, 80, 24, true, false);
    make_findings(&m);
    assert_picture("top-findings.txt", &m, 80, 24, true, false);
    assert_int_equal(top_model_findings(&m, order), 3);
    assert_true(m.findings[order[0]].now && m.findings[order[1]].now);
    m.sort = 1; // by member
    top_model_findings(&m, order);
    assert_string_equal(m.findings[order[0]].member, "gpu 1 on n1");
    m.descending = true;
    top_model_findings(&m, order);
    assert_string_equal(m.findings[order[0]].member, "rank 3 on n2");
    strcpy(m.filter, "RANK");
    assert_int_equal(top_model_findings(&m, order), 2);
    assert_int_equal(top_model_rows(&m), 2);
    m.filter[0] = 0;
    m.sort = -1;
    m.descending = false;
    add_silent(&m);
    assert_picture("top-silent.txt", &m, 80, 24, true, false);
    assert_int_equal(top_model_findings(&m, order), 4);
    assert_string_equal(m.findings[order[0]].member, "rank 7 on n4");
    top_model_free(&m);
}

static struct top_row *keyed_row(struct top_table *t, const char *name, const char *first,
                                 const char *second)
{
    struct top_row *row = top_table_row(t, str_of(name), name);
    assert_non_null(row);
    row->key_values[0] = first;
    row->key_values[1] = second;
    return row;
}

// A slow member is marked in its own row and at its node; a member that was slow before is not.
static void slow_members_are_marked(void **state)
{
    (void)state;
    struct top_model m;
    make_job(&m);
    make_findings(&m);
    struct top_table *t = &m.tables[0];
    assert_true(top_model_marked(&m, t, keyed_row(t, "n1", "n1", NULL)));
    assert_true(top_model_marked(&m, t, keyed_row(t, "n2", "n2", NULL)));
    assert_false(top_model_marked(&m, t, keyed_row(t, "n3", "n3", NULL)));
    top_model_show(&m, TOP_GPUS, NULL);
    t = &m.tables[0];
    assert_true(top_model_marked(&m, t, keyed_row(t, "n1 gpu 1", "n1", "1")));
    assert_false(top_model_marked(&m, t, keyed_row(t, "n1 gpu 0", "n1", "0")));
    assert_false(top_model_marked(&m, t, keyed_row(t, "n2 gpu 1", "n2", "1")));
    top_model_show(&m, TOP_RANKS, NULL);
    t = &m.tables[0];
    assert_true(top_model_marked(&m, t, keyed_row(t, "rank 3 n2", "3", "n2")));
    assert_false(top_model_marked(&m, t, keyed_row(t, "rank 1 n1", "1", "n1")));
    top_model_show(&m, TOP_NODE, "n2");
    assert_true(top_model_marked(&m, &m.tables[1], keyed_row(&m.tables[1], "rank 3", "3", NULL)));
    assert_false(top_model_marked(&m, &m.tables[0], keyed_row(&m.tables[0], "gpu 1", "1", NULL)));
    assert_false(
        top_model_marked(&m, &m.tables[2], keyed_row(&m.tables[2], "7 python3", "7", "p")));
    top_model_show(&m, TOP_METRICS, NULL);
    t = &m.tables[0];
    assert_true(top_model_marked(&m, t, keyed_row(t, "step_seconds", NULL, NULL)));
    assert_false(top_model_marked(&m, t, keyed_row(t, "loss", NULL, NULL)));
    top_model_free(&m);
}

static void ranks_have_the_columns_that_users_emit(void **state)
{
    (void)state;
    struct top_model m;
    make_job(&m);
    make_findings(&m);
    m.job.restarts = 2;
    m.job.dropped = 17;
    top_model_show(&m, TOP_RANKS, NULL);
    struct top_table *t = &m.tables[0];
    assert_picture("top-no-ranks.txt", &m, 80, 24, true, false);
    assert_int_equal(top_table_column(t, "loss", "", false), 0);
    for (size_t i = 0; i < 12; i++) {
        char name[32], *rank;
        snprintf(name, sizeof name, "rank %zu n2", i);
        if (i == 5) // a new column has room in all rows
            assert_int_equal(top_table_column(t, "step_seconds", "seconds", false), 1);
        fill(t, i, name, "");
        rank = arena_strdup(&t->arena, str_slice(str_of(name), 5, strlen(name) - 3));
        t->rows[i].key_values[0] = rank;
        t->rows[i].key_values[1] = "n2";
    }
    assert_int_equal(top_table_column(t, "loss", "", false), 0);
    assert_picture("top-ranks.txt", &m, 80, 24, true, false);
    for (int i = 2; i < TOP_COLUMNS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "m%d", i);
        assert_int_equal(top_table_column(t, name, "", true), i);
    }
    assert_int_equal(top_table_column(t, "one_more", "", true), -1);
    top_model_free(&m);
}

static struct top_event a_span(const char *text, const char *process, int64_t id, int64_t parent,
                               int seconds)
{
    return (struct top_event){.text = text,
                              .node = "n1",
                              .tags = process,
                              .process = process,
                              .id = id,
                              .parent = parent,
                              .start_ns = END_NS - (int64_t)seconds * NS_PER_S};
}

static void spans_are_nested_by_process(void **state)
{
    (void)state;
    struct top_model m;
    size_t order[TOP_EVENTS_MAX];
    make_job(&m);
    top_model_show(&m, TOP_EVENTS, NULL);
    m.events[m.event_count++] = a_span("forward", "rank=10", 6, 5, 1);
    m.events[m.event_count++] = a_span("step", "rank=2", 2, 1, 3);
    m.events[m.event_count++] = a_span("epoch", "rank=10", 4, 0, 95);
    m.events[m.event_count++] = a_span("step", "rank=10", 5, 4, 2);
    m.events[m.event_count++] = a_span("epoch", "rank=2", 1, 77, 90); // its parent has ended
    top_model_nest(&m);
    assert_picture("top-spans.txt", &m, 80, 24, true, false);
    m.sort = 0; // newest first
    top_model_events(&m, order);
    assert_string_equal(m.events[order[0]].text, "forward");
    strcpy(m.filter, "EPOCH");
    assert_int_equal(top_model_events(&m, order), 2);
    assert_int_equal(top_model_rows(&m), 2);
    // Cyclic ids do not cause an endless loop.
    m.events[4].parent = 2;
    top_model_nest(&m);
    assert_in_range(m.events[4].depth, 1, 5);
    top_model_free(&m);
}

// ---------------------------------------------------------------- small screens and the help

static void small_screens(void **state)
{
    (void)state;
    struct top_model m;
    make_nodes(&m);
    make_findings(&m);
    assert_picture("top-nodes-40x10.txt", &m, 40, 10, true, false);
    m.help = true;
    assert_picture("top-help-40x10.txt", &m, 40, 10, true, false);
    m.help_scroll = 1000; // clamped to the lines
    assert_picture("top-help-end-40x10.txt", &m, 40, 10, true, false);
    m.help = false;
    top_model_show(&m, TOP_MEMBER, "gpu 1");
    strcpy(m.node, "n1");
    for (int columns = 1; columns < 130; columns += 3)
        for (int rows = 1; rows < 30; rows += 2) {
            struct screen s;
            assert_int_equal(screen_create(&s, columns, rows, true), 0);
            for (int kind = 0; kind < TOP_KIND_COUNT; kind++) {
                m.kind = (enum top_kind)kind;
                top_view_draw(&s, &m);
            }
            screen_free(&s);
        }
    top_model_free(&m);
}

// Each key of the table does something, is in the help on the smallest usual screen, and occurs
// once.
static void the_help_names_every_key(void **state)
{
    (void)state;
    struct top_model m;
    struct screen s;
    struct buf picture = {0};
    make_job(&m);
    m.help = true;
    assert_int_equal(screen_create(&s, 80, 24, true), 0);
    top_view_draw(&s, &m);
    screen_plain(&picture, &s, false);
    for (size_t i = 0; i < top_key_count; i++) {
        const struct top_key *key = &top_keys[i];
        if (key->label && !strstr(buf_cstr(&picture), key->label))
            fail_msg("the help does not name %s", key->label);
        if (key->does && !strstr(buf_cstr(&picture), key->does))
            fail_msg("the help does not say: %s", key->does);
        assert_true(key->label || (i && top_keys[i - 1].label) ||
                    (i && key->action == TOP_DO_VIEW));
        for (size_t k = 0; k < TOP_KEY_CODES_MAX && key->codes[k]; k++)
            assert_int_equal(top_action_of(key->codes[k]), key->action);
    }
    assert_int_equal(top_action_of('x'), TOP_DO_NOTHING);
    buf_free(&picture);
    screen_free(&s);
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
    assert_string_equal(m.tables[0].rows[order[1]].name, "n2"); // natural order: n2 before n10
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

// A value that is too old is not shown; buckets outside of the window are forgotten.
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

// Reads an answer like `sonde top`.
static int take(struct top_table *t, const size_t *columns, const char *const *rows, size_t queries,
                struct str text)
{
    // An exact allocation, so that reading behind it is detected.
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
    // the newest bucket is incomplete
    assert_float_equal(top_table_last(&m.tables[0], &m.tables[0].rows[0], 2), 2, 0);
    assert_int_equal(take(&m.tables[0], columns, rows, 1, buf_str(&text)),
                     -EBADMSG); // a query that was not sent
    top_model_free(&m);
    // All contents of an answer are checked: every truncation is refused, and no flipped bit causes
    // a crash.
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_in_all_sizes),
                                       cmocka_unit_test(the_other_views),
                                       cmocka_unit_test(filter_and_order),
                                       cmocka_unit_test(time_goes_on),
                                       cmocka_unit_test(answers_are_read),
                                       cmocka_unit_test(findings_are_listed),
                                       cmocka_unit_test(slow_members_are_marked),
                                       cmocka_unit_test(ranks_have_the_columns_that_users_emit),
                                       cmocka_unit_test(spans_are_nested_by_process),
                                       cmocka_unit_test(small_screens),
                                       cmocka_unit_test(the_help_names_every_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
