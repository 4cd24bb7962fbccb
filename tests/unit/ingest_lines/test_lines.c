// Lines into a real store: explicit time stamps, StatsD's sums, its limits.
#include "base/clock.h"
#include "ingest/ingest.h"
#include "ingest/lines_cells.h"
#include "store/read.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct bench {
    char path[64];
    struct store *store;
    struct ingest *in;
    struct ingest_lines *lines;
    struct buf reply;
};

static void begin(struct bench *b)
{
    static const struct store_label host = {{"host", 4}, {"lab", 3}};
    *b = (struct bench){.path = "/tmp/sonde-lines-XXXXXX"};
    int fd = mkstemp(b->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(b->path), 0);
    struct store_options options = {0};
    assert_int_equal(store_open(b->path, &options, &b->store, NULL), 0);
    struct ingest_options ingest = {.labels = &host, .label_count = 1, .level = 1};
    assert_int_equal(ingest_create(b->store, &ingest, &b->in, NULL), 0);
    assert_int_equal(ingest_lines_create(b->in, &b->lines), 0);
}

static void feed(struct bench *b, const char *text)
{
    b->reply.size = 0;
    ingest_lines_feed(b->lines, str_of(text), &b->reply);
    ingest_lines_end(b->lines, &b->reply);
}

static void end(struct bench *b)
{
    ingest_lines_destroy(b->lines);
    ingest_destroy(b->in);
    assert_int_equal(store_close(b->store, NULL), 0);
    assert_int_equal(unlink(b->path), 0);
    buf_free(&b->reply);
}

// Lists the points of all series of the metric, one after the other.
static const char *points(struct bench *b, const char *metric, struct buf *out, size_t *count)
{
    struct store_reader *reader;
    uint32_t id;
    size_t series_count, all = 0;
    out->size = 0;
    assert_int_equal(store_reader_open(b->path, &reader, NULL), 0);
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_true(store_metric_find(s, str_of(metric), &id));
    const uint32_t *series = store_metric_series(s, id, &series_count);
    for (size_t i = 0; i < series_count; i++) {
        struct store_cursor *cursor = store_cursor_open(s, series[i], INT64_MIN, INT64_MAX);
        struct store_run run;
        while (store_cursor_next(cursor, &run) > 0) {
            const int64_t *t_ns;
            const double *values;
            size_t n;
            assert_int_equal(store_cursor_points(cursor, &t_ns, &values, &n), 0);
            for (size_t k = 0; k < n; k++)
                buf_printf(out, "%s%g", all++ ? " " : "", values[k]);
        }
        store_cursor_close(cursor);
    }
    store_snapshot_close(s);
    store_reader_close(reader);
    if (count)
        *count = all;
    return buf_cstr(out);
}

// Of two points at one time only one is kept, so lines without a time must get different times,
// however fast they arrive.
static void lines_without_a_time_are_all_kept(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    struct bench b;
    struct buf text = {0}, out = {0};
    size_t count;
    begin(&b);
    for (int i = 0; i < LINES / 2; i++)
        buf_printf(&text, "fast %d\nstep:%d|ms\n", i, i);
    feed(&b, buf_cstr(&text));
    assert_int_equal(b.reply.size, 0);
    points(&b, "fast", &out, &count);
    assert_int_equal(count, LINES / 2);
    feed(&b, "many:1:2:3:4|ms");
    assert_string_equal(points(&b, "many", &out, NULL), "1 2 3 4");
    buf_free(&text);
    buf_free(&out);
    end(&b);
}

static void statsd_adds_up_between_samples(void **state)
{
    (void)state;
    struct bench b;
    struct buf out = {0};
    begin(&b);
    feed(&b, "hits:1|c\nhits:2|c|@0.5\nlevel:10|g\nlevel:-3|g\nlevel:+1|g\nnew:-4|g\nwho:a|s\nwho:"
             "b|s\nwho:a|s\n");
    assert_int_equal(b.reply.size, 0);
    ingest_lines_sample(b.in, 1000);
    // No new data: counters and gauges stay, a set is empty, and reports that once.
    ingest_lines_sample(b.in, 2000);
    ingest_lines_sample(b.in, 3000);
    feed(&b, "hits:4|c\nlevel:2|g\nwho:a|s\n");
    ingest_lines_sample(b.in, 4000);
    assert_string_equal(points(&b, "hits", &out, NULL), "5 5 5 9");
    assert_string_equal(points(&b, "level", &out, NULL), "8 8 8 2");
    assert_string_equal(points(&b, "new", &out, NULL), "-4 -4 -4 -4");
    assert_string_equal(points(&b, "who", &out, NULL), "2 0 1");
    buf_free(&out);
    end(&b);
}

// Another connection, or tags in another order: the same counter.
static void cells_belong_to_the_series(void **state)
{
    (void)state;
    struct bench b;
    struct buf out = {0};
    begin(&b);
    feed(&b, "hits:1|c|#a:1,b:2\n");
    ingest_lines_destroy(b.lines);
    assert_int_equal(ingest_lines_create(b.in, &b.lines), 0);
    feed(&b, "hits:1|c|#b:2,a:1\nhits:1|c|#a:1\n");
    ingest_lines_sample(b.in, 1000);
    assert_string_equal(points(&b, "hits", &out, NULL), "2 1");
    buf_free(&out);
    end(&b);
}

static void a_set_has_a_limit(void **state)
{
    (void)state;
    struct bench b;
    struct buf text = {0}, out = {0};
    begin(&b);
    for (int i = 0; i < LINE_MEMBERS_MAX; i++)
        buf_printf(&text, "who:user%d|s\n", i);
    feed(&b, buf_cstr(&text));
    assert_int_equal(b.reply.size, 0);
    feed(&b, "who:one_more|s\nwho:user1|s\n");
    assert_string_equal(
        buf_cstr(&b.reply),
        "line 1: 'who' is not stored: the set has too many members (65536 between two samples)\n");
    ingest_lines_sample(b.in, 1000);
    feed(&b, "who:one_more|s\n");
    ingest_lines_sample(b.in, 2000);
    assert_string_equal(points(&b, "who", &out, NULL), "65536 1");
    buf_free(&text);
    buf_free(&out);
    end(&b);
}

static void everything_is_counted(void **state)
{
    (void)state;
    struct bench b;
    struct ingest_stats stats;
    begin(&b);
    feed(&b, "good 1\n\n# comment\nbad\nversion\nm:1|c\nm:1|s\n");
    ingest_get_stats(b.in, &stats);
    assert_int_equal(stats.lines, 5);
    assert_int_equal(stats.lines_bad, 2);
    assert_int_equal(stats.dropped_limit, 1);
    end(&b);
}

static bool first_event(const struct store_event *event, void *user)
{
    struct buf *out = user;
    buf_printf(out, "%d %.*s @%lld-%lld", event->kind, STR_ARG(event->text),
               (long long)event->start_ns, (long long)event->end_ns);
    for (size_t i = 0; i < event->label_count; i++)
        buf_printf(out, " %.*s=%.*s", STR_ARG(event->labels[i].key),
                   STR_ARG(event->labels[i].value));
    buf_add_char(out, ';');
    return true;
}

static void annotations_are_events(void **state)
{
    (void)state;
    struct bench b;
    struct buf out = {0};
    begin(&b);
    feed(&b, "annotate 1700000000 rank=3 -- rate halved\nannotate 1700000001 host=other -- "
             "x\nannotate 9000000000 -- y\n"
             "annotate k1=1 k2=2 k3=3 k4=4 k5=5 k6=6 k7=7 k8=8 k9=9 k10=1 k11=1 k12=1 k13=1 k14=1 "
             "k15=1 k16=1 -- z\n");
    assert_string_equal(buf_cstr(&b.reply), "line 3: the time is more than an hour in the future\n"
                                            "line 4: the annotation is not stored: too many tags "
                                            "(16 with host), or a name that is too long\n");
    struct store_reader *reader;
    assert_int_equal(store_reader_open(b.path, &reader, NULL), 0);
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_int_equal(store_events(s, INT64_MIN, INT64_MAX, first_event, &out), 0);
    assert_string_equal(buf_cstr(&out),
                        "1 rate halved @1700000000000000000-1700000000000000000 rank=3 host=lab;"
                        "1 x @1700000001000000000-1700000001000000000 host=other;");
    store_snapshot_close(s);
    store_reader_close(reader);
    buf_free(&out);
    end(&b);
}

static void spans_begin_and_end(void **state)
{
    (void)state;
    struct bench b;
    struct buf out = {0};
    begin(&b);
    feed(&b, "span begin a 1700000000 rank=3 -- outer\n"
             "span begin b/a 1700000001 -- inner\n"
             "span begin c 1700000002 host=other -- open\n"
             "span end b 1700000003\nspan end b\n"
             "span end a 1699999999\nspan end d\n");
    assert_string_equal(buf_cstr(&b.reply), "line 5: no open span has the id b\n"
                                            "line 7: no open span has the id d\n");
    ingest_lines_destroy(b.lines);
    b.lines = NULL;
    ingest_destroy(b.in); // what is open ends with the agent
    b.in = NULL;
    struct store_reader *reader;
    assert_int_equal(store_reader_open(b.path, &reader, NULL), 0);
    struct store_snapshot *s = store_snapshot_open(reader);
    assert_int_equal(store_events(s, INT64_MIN, INT64_MAX, first_event, &out), 0);
    const char *all = buf_cstr(&out), *open = strstr(all, "0 open @1700000002000000000-");
    assert_non_null(
        strstr(all, "0 outer @1700000000000000000-1700000000000000000 rank=3 host=lab;"));
    assert_non_null(strstr(all, "0 inner @1700000001000000000-1700000003000000000 host=lab;"));
    assert_non_null(open);
    assert_non_null(strstr(open, "host=other unfinished=1;"));
    store_snapshot_close(s);
    store_reader_close(reader);
    buf_free(&out);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_without_a_time_are_all_kept),
        cmocka_unit_test(statsd_adds_up_between_samples),
        cmocka_unit_test(cells_belong_to_the_series),
        cmocka_unit_test(a_set_has_a_limit),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(annotations_are_events),
        cmocka_unit_test(spans_begin_and_end),
    };
    return cmocka_run_group_tests_name("ingest_lines/lines", tests, NULL, NULL);
}
