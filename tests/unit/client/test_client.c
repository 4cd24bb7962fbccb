// sonde_client.h on recordings, and on a file that is being written; tests/client and tests/python
// cover live jobs.
#include "client/arrow_interface.h"
#include "launch/job.h"
#include "sonde_client.h"
#include "store/store.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 5000 };
#define T INT64_C(1356998400000000000)
#define NS INT64_C(1000000000)

struct place {
    char folder[64], path[96];
    struct store *store; // being written
    uint32_t series[2];
};

static struct sonde_error e;

static int make(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct error words = {0};
    uint32_t metric, counter, steps;
    *state = p;
    snprintf(p->folder, sizeof p->folder, "/tmp/sonde-client-XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->path, sizeof p->path, "%s/n1.sonde", p->folder);
    if (store_open(p->path, &(struct store_options){0}, &p->store, &words) != 0)
        return -1;
    store_define_metric(
        p->store,
        &(struct store_metric){
            .name = STR("loss"), .unit = STR("nats"), .help = STR("Left."), .level = 1},
        &metric);
    store_define_metric(
        p->store, &(struct store_metric){.name = STR("steps"), .kind = STORE_COUNTER, .level = 1},
        &counter);
    for (unsigned i = 0; i < 2; i++) {
        struct store_label labels[] = {{STR("host"), STR("n1")},
                                       {STR("rank"), i ? STR("1") : STR("0")}};
        store_define_series(p->store, metric, labels, 2, &p->series[i]);
        for (int s = 0; s < SECONDS; s++)
            store_append(p->store, p->series[i], T + s * NS, (s * 7) % 1000 + 10000 * (double)i);
    }
    store_define_series(p->store, counter, &(struct store_label){STR("host"), STR("n1")}, 1,
                        &steps);
    for (int s = 0; s < 10; s++)
        store_append(p->store, steps, T + s * NS, 2 * s);
    struct store_label number = {STR("number"), STR("1")};
    store_append_event(p->store, &(struct store_event){.kind = STORE_SPAN,
                                                       .start_ns = T + 10 * NS,
                                                       .end_ns = T + 20 * NS,
                                                       .text = STR("epoch"),
                                                       .id = 7,
                                                       .labels = &number,
                                                       .label_count = 1});
    store_append_event(p->store, &(struct store_event){.kind = STORE_SPAN,
                                                       .start_ns = T + 20 * NS,
                                                       .end_ns = INT64_MAX,
                                                       .text = STR("open"),
                                                       .id = 8,
                                                       .parent = 7});
    store_append_event(p->store, &(struct store_event){.kind = STORE_ANNOTATION,
                                                       .start_ns = T + 5 * NS,
                                                       .end_ns = T + 5 * NS,
                                                       .text = STR("half")});
    return 0;
}

static int clear(void **state)
{
    struct place *p = *state;
    char command[128];
    struct error words;
    snprintf(command, sizeof command, "rm -r '%s'", p->folder);
    int rc = store_close(p->store, &words);
    rc |= system(command);
    free(p);
    return rc;
}

static struct sonde_client *open_it(const char *where)
{
    struct sonde_client *c = NULL;
    int rc = sonde_client_open(where, NULL, &c, &e);
    if (rc)
        fail_msg("%s", e.text);
    assert_string_equal(sonde_client_name(c), where);
    return c;
}

static struct sonde_result *ask(struct sonde_client *c, struct sonde_query q)
{
    struct sonde_result *r = NULL;
    if (sonde_client_query(c, &q, &r, &e) != 0)
        fail_msg("%s", e.text);
    return r;
}

// ---------------------------------------------------------------- points

static void test_query(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_result *r = ask(c, (struct sonde_query){.m = "none:loss{rank=1}"});
    assert_int_equal(sonde_result_count(r), 1);
    assert_null(sonde_result_series(r, 1));
    assert_null(sonde_result_missing(r));
    const struct sonde_series *s = sonde_result_series(r, 0);
    assert_string_equal(s->metric, "loss");
    assert_string_equal(s->unit, "nats");
    assert_int_equal(s->kind, SONDE_GAUGE);
    assert_int_equal(s->tag_count, 2);
    assert_string_equal(s->tags[1].key, "rank");
    assert_string_equal(s->tags[1].value, "1");
    assert_int_equal(s->count, SECONDS);
    assert_int_equal(s->time_ns[3], T + 3 * NS);
    assert_float_equal(s->values[3], 10021, 0);
    sonde_result_free(r);
    const struct sonde_filter filters[] = {{"rank", NULL, "0|1", true},
                                           {"host", "regexp", "n[0-9]", false}};
    r = ask(c, (struct sonde_query){.metric = "loss",
                                    .aggregator = "max",
                                    .downsample = "10s-avg",
                                    .filters = filters,
                                    .filter_count = 2,
                                    .start_ns = T,
                                    .end_ns = T + 25 * NS});
    assert_int_equal(sonde_result_count(r), 2);
    assert_int_equal(sonde_result_series(r, 0)->count, 3);
    assert_float_equal(sonde_result_series(r, 1)->values[1], 10101.5, 0);
    sonde_result_free(r);
    r = ask(c, (struct sonde_query){.metric = "steps",
                                    .rate = true,
                                    .counter = true,
                                    .start = "1356998400.5",
                                    .end = "1356998403"});
    assert_int_equal(sonde_result_series(r, 0)->kind, SONDE_COUNTER);
    assert_int_equal(sonde_result_series(r, 0)->count, 3);
    assert_float_equal(sonde_result_series(r, 0)->values[0], 2, 0);
    sonde_result_free(r);
    r = ask(c,
            (struct sonde_query){.metric = "loss", .start_ns = T - 20 * NS, .end_ns = T - 10 * NS});
    assert_int_equal(sonde_result_count(r), 0);
    sonde_result_free(r);
    sonde_client_close(c);
}

static void test_per_span(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->folder);
    const struct sonde_tag tags[] = {{"number", "*"}};
    struct sonde_result *r = ask(c, (struct sonde_query){.metric = "loss",
                                                         .aggregator = "sum",
                                                         .downsample = "0all-max",
                                                         .span = "epoch",
                                                         .span_tags = tags,
                                                         .span_tag_count = 1});
    assert_int_equal(sonde_result_count(r), 1);
    const struct sonde_series *s = sonde_result_series(r, 0);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->time_ns[0], T + 10 * NS);
    assert_float_equal(s->values[0], 19 * 7 * 2 + 10000, 0);
    assert_string_equal(s->tags[1].key, "number");
    assert_int_equal(s->aggregate_tag_count, 1);
    assert_string_equal(s->aggregate_tags[0], "rank");
    sonde_result_free(r);
    sonde_client_close(c);
}

static void test_peaks(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_result *r;
    const char *const by[] = {"host", NULL};
    const struct sonde_filter filter = {"rank", NULL, "0", false};
    assert_int_equal(sonde_client_peaks(c, &(struct sonde_query){.metric = "loss"}, by, &r, &e), 0);
    assert_int_equal(sonde_result_count(r), 1);
    assert_string_equal(sonde_result_series(r, 0)->tags[1].value, "1");
    assert_float_equal(sonde_result_series(r, 0)->values[0], 10999, 0);
    // the last multiple of 7 below the end: 857 × 7 = 5999
    assert_int_equal(sonde_result_series(r, 0)->time_ns[0], T + 857 * NS);
    sonde_result_free(r);
    // A range whose ends divide the parts of the search, with the highest point in such a part.
    for (int64_t first = 1000; first < 1100; first += 33) {
        for (int64_t last = first + 2; last < first + 4000; last = last * 2 - first + 1) {
            struct sonde_query q = {.metric = "loss",
                                    .filters = &filter,
                                    .filter_count = 1,
                                    .start_ns = T + first * NS,
                                    .end_ns = T + last * NS};
            int64_t best = first;
            for (int64_t s = first; s <= last && s < SECONDS; s++)
                best = s * 7 % 1000 > best * 7 % 1000 ? s : best;
            assert_int_equal(sonde_client_peaks(c, &q, NULL, &r, &e), 0);
            assert_int_equal(sonde_result_series(r, 0)->time_ns[0], T + best * NS);
            assert_float_equal(sonde_result_series(r, 0)->values[0], (double)(best * 7 % 1000), 0);
            sonde_result_free(r);
        }
    }
    sonde_client_close(c);
}

// The rows have so many points that peaks are searched in summaries; statistics read the points.
static void peaks_of_many_points_are_those_of_statistics(void **state)
{
    enum { POINTS = 230000, SERIES = 3 }; // more than PEAKS_SEARCH_POINTS_LEAST in each row
    struct place *p = *state;
    const char *const by[] = {"host", NULL}, *const rank[] = {"rank", NULL};
    const char *const *const groups[] = {NULL, by, rank};
    uint32_t metric, series;
    store_define_metric(p->store, &(struct store_metric){.name = STR("dense"), .level = 1},
                        &metric);
    for (int64_t i = 0; i < SERIES; i++) {
        struct store_label labels[] = {{STR("host"), STR("n1")},
                                       {STR("rank"), i == 2 ? STR("2")
                                                     : i    ? STR("1")
                                                            : STR("0")}};
        store_define_series(p->store, metric, labels, 2, &series);
        // Each value occurs in all series and several times in each; the first one has rank 1.
        for (int64_t k = 0; k < POINTS; k++)
            store_append(p->store, series, T + k * NS / 10 + (i + 2) % 3,
                         (double)(k * 7919 % 100003));
    }
    struct sonde_client *c = open_it(p->path);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (int64_t ends = 0; ends < 2; ends++) {
            const struct sonde_query q = {.metric = "dense",
                                          .start_ns = ends ? T + 3 * NS : 0,
                                          .end_ns = ends ? T + 22990 * NS + 5 : 0};
            const struct sonde_stats_query all = {
                .expression = "dense", .by = groups[g], .start_ns = q.start_ns, .end_ns = q.end_ns};
            struct sonde_result *r;
            struct sonde_stats *s;
            assert_int_equal(sonde_client_peaks(c, &q, groups[g], &r, &e), 0);
            assert_int_equal(sonde_client_stats(c, &all, &s, &e), 0);
            assert_int_equal(sonde_result_count(r), s->count);
            for (size_t i = 0; i < s->count; i++) {
                const struct sonde_series *peak = sonde_result_series(r, i);
                assert_float_equal(peak->values[0], s->rows[i].max, 0);
                assert_int_equal(peak->time_ns[0], s->rows[i].max_ns);
                assert_int_equal(peak->tag_count, 2);
                assert_string_equal(peak->tags[1].value, s->rows[i].max_tags[1].value);
            }
            sonde_result_free(r);
            sonde_stats_free(s);
        }
    sonde_client_close(c);
}

static void test_stats(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_stats *s;
    const char *const by[] = {"host", NULL};
    struct sonde_stats_query q = {.expression = "loss{rank=0}"};
    assert_int_equal(sonde_client_stats(c, &q, &s, &e), 0);
    assert_string_equal(s->metric, "loss");
    assert_null(s->missing);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->rows[0].count, SECONDS);
    assert_int_equal(s->rows[0].first_ns, T);
    assert_float_equal(s->rows[0].max, 999, 0);
    assert_int_equal(s->rows[0].max_ns, T + 857 * NS);
    assert_int_equal(s->rows[0].covered_ns, (SECONDS - 1) * NS);
    sonde_stats_free(s);
    q = (struct sonde_stats_query){.expression = "loss", .by = by, .start_ns = T, .end_ns = T};
    assert_int_equal(sonde_client_stats(c, &q, &s, &e), 0);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->rows[0].tag_count, 1);
    assert_int_equal(s->rows[0].covered_ns, 0);
    assert_true(isnan(s->rows[0].integral));
    sonde_stats_free(s);
    q = (struct sonde_stats_query){.expression = "loss", .end_ns = 1};
    assert_int_equal(sonde_client_stats(c, &q, &s, &e), 0);
    assert_int_equal(s->count, 0);
    assert_null(s->metric);
    sonde_stats_free(s);
    q = (struct sonde_stats_query){.expression = "loss{"};
    assert_int_equal(sonde_client_stats(c, &q, &s, &e), -EINVAL);
    assert_null(s);
    assert_int_equal(sonde_client_stats(c, &(struct sonde_stats_query){0}, &s, &e), -EINVAL);
    q = (struct sonde_stats_query){.expression = "loss", .start = "yesterday"};
    assert_int_equal(sonde_client_stats(c, &q, &s, &e), -EINVAL);
    sonde_stats_free(NULL);
    sonde_client_close(c);
}

static void test_mistakes(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_result *r;
    static const struct {
        struct sonde_query query;
        const char *words;
    } rows[] = {
        {{0}, "either"},
        {{.m = "none:loss", .metric = "loss"}, "either"},
        {{.m = "none:loss", .downsample = "1s-avg"}, "belong to metric"},
        {{.metric = "loss", .span_node = true}, "needs the name"},
        {{.metric = "nobody"}, "No such name"},
        {{.m = "loss"}, "Invalid m"},
        {{.metric = "loss", .start = "then"}, "then"},
        {{.metric = "loss", .start_ns = 2 * NS, .end_ns = NS}, "before"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sonde_client_query(c, &rows[i].query, &r, &e), -EINVAL);
        if (!strstr(e.text, rows[i].words))
            fail_msg("%zu: %s", i, e.text);
        assert_null(r);
        assert_int_equal(sonde_client_query(c, &rows[i].query, &r, NULL), -EINVAL);
    }
    struct sonde_watch *w;
    assert_int_equal(sonde_client_watch(c, &(struct sonde_query){.m = "sum:1s-avg:loss"}, &w, &e),
                     -EINVAL);
    char *text;
    size_t size;
    assert_int_equal(sonde_client_ask(c, "sonde", NULL, &text, &size, &e), -EINVAL);
    assert_int_equal(sonde_client_ask(c, "/api/put", "[]", &text, &size, &e), -ENOENT);
    assert_non_null(strstr(e.text, "running jobs do"));
    assert_int_equal(sonde_client_ask(c, "/sonde/v1/nodes", NULL, &text, &size, &e), 0);
    assert_int_equal(strlen(text), size);
    sonde_list_free(text);
    sonde_client_close(c);
    assert_int_equal(sonde_client_open("/nowhere/at/all", NULL, &c, &e), -ENOENT);
    assert_null(c);
    sonde_client_close(NULL);
    sonde_result_free(NULL);
}

static void test_what_cannot_be_read_is_missing(void **state)
{
    const struct place *p = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/torn.sonde", p->folder);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 5000; i++)
        fputc('x', f);
    fclose(f);
    struct sonde_client *c = open_it(p->folder);
    struct sonde_result *r = ask(c, (struct sonde_query){.metric = "loss"});
    assert_int_equal(sonde_result_count(r), 2);
    char expected[256];
    snprintf(expected, sizeof expected,
             "torn.sonde (unreadable: %s: not a sonde file (5000 bytes, magic 0x78787878))", path);
    assert_string_equal(sonde_result_missing(r), expected);
    sonde_result_free(r);
    sonde_client_close(c);
    unlink(path);
}

// ---------------------------------------------------------------- lists

static void test_lists(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_node *nodes;
    struct sonde_metric_info *metrics;
    struct sonde_series_info *series;
    struct sonde_event *events;
    size_t count;
    assert_int_equal(sonde_client_nodes(c, &nodes, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_string_equal(nodes[0].state, "live");
    assert_int_equal(nodes[0].series, 3);
    assert_int_equal(nodes[0].first_ns, T);
    assert_int_equal(nodes[0].last_ns, T + (SECONDS - 1) * NS);
    sonde_list_free(nodes);
    assert_int_equal(sonde_client_metrics(c, NULL, &metrics, &count, &e), 0);
    assert_int_equal(count, 2);
    sonde_list_free(metrics);
    assert_int_equal(sonde_client_metrics(c, "os", &metrics, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_string_equal(metrics[0].help, "Left.");
    assert_int_equal(metrics[0].level, 1);
    sonde_list_free(metrics);
    assert_int_equal(sonde_client_list(c, "loss{rank=1}", &series, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_string_equal(series[0].tags[1].value, "1");
    assert_int_equal(series[0].time_ns, T + (SECONDS - 1) * NS);
    sonde_list_free(series);
    assert_int_equal(sonde_client_spans(c, NULL, NULL, NULL, &events, &count, &e), 0);
    assert_int_equal(count, 2);
    assert_string_equal(events[0].text, "epoch");
    assert_string_equal(events[0].tags[0].key, "number");
    assert_int_equal(events[1].end_ns, 0);
    assert_int_equal(events[1].parent, 7);
    sonde_list_free(events);
    assert_int_equal(sonde_client_annotations(c, "1356998405", "1356998405", &events, &count, &e),
                     0);
    assert_int_equal(count, 1);
    assert_int_equal(events[0].end_ns, T + 5 * NS);
    sonde_list_free(events);
    assert_int_equal(sonde_client_spans(c, "no such & name", NULL, NULL, &events, &count, &e), 0);
    assert_int_equal(count, 0);
    sonde_list_free(events);
    assert_int_equal(sonde_client_list(c, "{", &series, &count, &e), -EINVAL);
    assert_null(series);
    sonde_client_close(c);
}

// ---------------------------------------------------------------- Arrow

static void test_arrow(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_result *r = ask(c, (struct sonde_query){.metric = "loss"});
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch, end;
    const double *values = sonde_result_series(r, 0)->values;
    assert_int_equal(sonde_result_arrow(r, &stream, &e), 0);
    sonde_result_free(r);
    sonde_client_close(c);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    static const char *const names[] = {"time", "value", "metric", "host", "rank"},
                             *const formats[] = {"tsn:UTC", "g", "i", "i", "i"};
    assert_int_equal(schema.n_children, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(schema.children[i]->name, names[i]);
        assert_string_equal(schema.children[i]->format, formats[i]);
    }
    assert_string_equal(schema.children[4]->dictionary->format, "u");
    schema.release(&schema);
    assert_null(schema.release);
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    assert_int_equal(batch.length, SECONDS);
    assert_ptr_equal(batch.children[1]->buffers[1], values); // not copied
    // A consumer may keep one column and release the rest, in any order, and after the stream.
    struct ArrowArray column = *batch.children[4];
    batch.children[4]->release = NULL;
    batch.release(&batch);
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    assert_int_equal(stream.get_next(&stream, &end), 0);
    assert_null(end.release);
    stream.release(&stream);
    assert_null(stream.release);
    assert_int_equal(((const int32_t *)batch.children[4]->buffers[1])[SECONDS - 1], 1);
    batch.release(&batch);
    assert_int_equal(((const int32_t *)column.buffers[1])[SECONDS - 1], 0);
    assert_int_equal(column.dictionary->length, 2);
    assert_memory_equal(column.dictionary->buffers[2], "01", 2);
    column.release(&column);
}

// ---------------------------------------------------------------- watching

static void test_watch(void **state)
{
    struct place *p = *state;
    struct sonde_client *c = open_it(p->path);
    struct sonde_watch *w;
    struct sonde_result *r;
    assert_int_equal(sonde_client_watch(c, &(struct sonde_query){.metric = "loss"}, &w, &e), 0);
    assert_int_equal(sonde_watch_next(w, 0, &r, &e), -ETIMEDOUT);
    assert_null(r);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ns = now.tv_sec * NS + now.tv_nsec;
    assert_int_equal(store_append(p->store, p->series[0], now_ns, 5), 0);
    assert_int_equal(store_append(p->store, p->series[0], now_ns + 1, 6), 0);
    assert_int_equal(sonde_watch_next(w, 60000, &r, &e), 0);
    assert_int_equal(sonde_result_count(r), 1);
    const struct sonde_series *s = sonde_result_series(r, 0);
    double last = s->values[s->count - 1];
    sonde_result_free(r);
    if (last < 6) { // a query came between the two appends
        assert_int_equal(sonde_watch_next(w, 60000, &r, &e), 0);
        sonde_result_free(r);
    }
    // late: before the last reported point
    assert_int_equal(store_append(p->store, p->series[0], now_ns - 1, 7), 0);
    assert_int_equal(store_append(p->store, p->series[1], now_ns, 8), 0);
    assert_int_equal(sonde_watch_next(w, 60000, &r, &e), 0);
    assert_int_equal(sonde_result_count(r), 1);
    assert_float_equal(sonde_result_series(r, 0)->values[0], 8, 0);
    assert_int_equal(sonde_result_series(r, 0)->count, 1);
    sonde_result_free(r);
    assert_int_equal(sonde_watch_next(w, 0, &r, &e), -ETIMEDOUT);
    sonde_watch_close(w);
    sonde_client_close(c);
}

// The status of a recording contains the launcher's description beside it, like a server's.
static void test_status_of_a_recording(void **state)
{
    const struct place *p = *state;
    struct job run = {.id = "j7",
                      .command = (char *)(uintptr_t) "./train \"a b\"",
                      .start_ns = T,
                      .end_ns = T + 60 * NS,
                      .level = 2,
                      .exit_code = 3};
    struct error words;
    struct sonde_client *c = open_it(p->folder);
    char *text;
    size_t size;
    if (sonde_client_ask(c, "/sonde/v1/status", NULL, &text, &size, &e) != 0)
        fail_msg("%s", e.text);
    assert_non_null(strstr(text, "\"runs\":[]")); // no description exists
    sonde_list_free(text);
    assert_int_equal(job_write(&run, p->folder, JOB_RUN_FILE, &words), 0);
    assert_int_equal(sonde_client_ask(c, "/sonde/v1/status", NULL, &text, &size, &e), 0);
    assert_non_null(strstr(text, "\"command\":\"./train \\\"a b\\\"\",\"level\":2,"
                                 "\"start_ns\":1356998400000000000,"
                                 "\"end_ns\":1356998460000000000,\"exit_code\":3}"));
    assert_non_null(strstr(text, "\"state\":\"live\""));
    assert_null(strstr(text, "\"connections\":{")); // without a server, its counts are missing
    assert_null(strstr(text, "\"workers\""));
    sonde_list_free(text);
    sonde_client_close(c);
}

static bool yes(void *user)
{
    ++*(int *)user;
    return true;
}

static void test_a_watch_is_cancelled(void **state)
{
    const struct place *p = *state;
    struct sonde_client *c;
    struct sonde_watch *w;
    struct sonde_result *r;
    int asked = 0;
    assert_int_equal(sonde_client_open(p->path,
                                       &(struct sonde_client_options){.stop = yes, .user = &asked},
                                       &c, &e),
                     0);
    assert_int_equal(sonde_client_watch(c, &(struct sonde_query){.metric = "not_yet"}, &w, &e), 0);
    assert_int_equal(sonde_watch_next(w, 600000, &r, &e), -ECANCELED);
    assert_true(asked > 0);
    sonde_watch_close(w);
    sonde_client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_query, make, clear),
        cmocka_unit_test_setup_teardown(test_per_span, make, clear),
        cmocka_unit_test_setup_teardown(test_peaks, make, clear),
        cmocka_unit_test_setup_teardown(peaks_of_many_points_are_those_of_statistics, make, clear),
        cmocka_unit_test_setup_teardown(test_stats, make, clear),
        cmocka_unit_test_setup_teardown(test_mistakes, make, clear),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_read_is_missing, make, clear),
        cmocka_unit_test_setup_teardown(test_lists, make, clear),
        cmocka_unit_test_setup_teardown(test_status_of_a_recording, make, clear),
        cmocka_unit_test_setup_teardown(test_arrow, make, clear),
        cmocka_unit_test_setup_teardown(test_watch, make, clear),
        cmocka_unit_test_setup_teardown(test_a_watch_is_cancelled, make, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
