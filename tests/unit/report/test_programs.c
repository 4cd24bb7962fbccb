// Tests the conclusions about the user's programs: the figures of their metrics, pairs of metrics
// that agree, and the processor use within spans.
#include "report/programs.h"
#include "report/span_cpu.h"
#include "unit/report/findings_world.h"

static const int64_t second = 1000000000;

// The report's own metrics, each with one series.
struct own {
    struct report_line lines[REPORT_OWN_MAX][2];
    double buckets[REPORT_OWN_MAX][2][BUCKETS], least[REPORT_OWN_MAX][BUCKETS];
};

static void add_own(struct world *w, struct own *own, const char *name, const char *part,
                    double (*at)(size_t bucket))
{
    struct report *r = &w->report;
    size_t i = 0;
    while (i < r->own_count && !str_eq(r->own[i].metric, str_of(name)))
        i++;
    struct report_measure *m = &r->own[i];
    struct report_line *l = &own->lines[i][m->count];
    double *buckets = own->buckets[i][m->count], sum = 0;
    *l = (struct report_line){.host = STR("n1"),
                              .part = str_of(part),
                              .peak = (double)NAN,
                              .reached = (double)NAN,
                              .buckets = buckets};
    for (size_t k = 0; k < BUCKETS; k++) {
        buckets[k] = at(k);
        if (!m->count)
            own->least[i][k] = buckets[k];
        else
            own->least[i][k] = fmin(own->least[i][k], buckets[k]);
        if (isnan(buckets[k]))
            continue;
        sum += buckets[k];
        l->points++;
        l->peak = fmax(l->peak, buckets[k]);
    }
    l->mean = sum / l->points;
    m->metric = str_of(name);
    m->lines = own->lines[i];
    m->least = own->least[i];
    m->count++;
    r->own_count += i == r->own_count;
}

static double wave(size_t bucket)
{
    return sin((double)bucket / 4);
}

// The wave, and an error that ends in the middle of the run.
static double learned(size_t bucket)
{
    return wave(bucket) + (bucket < BUCKETS / 2 ? 0.2 : 0);
}

static double far_off(size_t bucket)
{
    return wave(bucket) + 1;
}

static double falls(size_t bucket)
{
    return bucket < 12 ? 8 : bucket >= BUCKETS - 12 ? 0.5 : 2;
}

static double in_the_middle(size_t bucket)
{
    return bucket == 50 || bucket == 51 ? (double)(bucket - 49) : (double)NAN;
}

static double in_few(size_t bucket)
{
    return bucket < 9 ? wave(bucket) : (double)NAN;
}

static double flat(size_t bucket)
{
    (void)bucket;
    return 3;
}

static struct own *with_own(void)
{
    struct own *own = calloc(1, sizeof *own);
    assert_non_null(own);
    return own;
}

static void figures_cover_all_series(void **state)
{
    (void)state;
    struct world *w = begin();
    struct own *own = with_own();
    add_own(w, own, "loss", "rank=0", falls);
    add_own(w, own, "loss", "rank=1", in_the_middle);
    struct program_metric all = program_metric_of(&w->report, &w->report.own[0]);
    double sum = 8.0 * 12 + 0.5 * 12 + 2.0 * (BUCKETS - 24) + 1 + 2;
    assert_true(all.points == BUCKETS + 2);
    assert_true(fabs(all.mean - sum / (BUCKETS + 2)) < 1e-12);
    assert_true(all.least == 0.5 && all.greatest == 8);
    assert_true(all.first == 8 && all.last == 0.5);
    assert_true(isnan(all.reached));
    free(own);
    end(w);
}

static void first_and_last_skip_time_without_values(void **state)
{
    (void)state;
    struct world *w = begin();
    struct own *own = with_own();
    add_own(w, own, "late", "", in_the_middle);
    struct program_metric all = program_metric_of(&w->report, &w->report.own[0]);
    assert_true(all.first == 1 && all.last == 2);
    free(own);
    end(w);
}

static void counters_have_a_total(void **state)
{
    (void)state;
    struct world *w = begin();
    struct own *own = with_own();
    add_own(w, own, "steps", "rank=0", flat);
    add_own(w, own, "steps", "rank=1", flat);
    w->report.own[0].counter = true;
    own->lines[0][0].reached = 3600;
    own->lines[0][1].reached = 400;
    struct program_metric all = program_metric_of(&w->report, &w->report.own[0]);
    assert_true(all.reached == 4000 && all.mean == 6);
    assert_true(isnan(all.least) && isnan(all.first) && isnan(all.last));
    free(own);
    end(w);
}

static void a_prediction_agrees_with_its_value(void **state)
{
    (void)state;
    struct world *w = begin();
    struct own *own = with_own();
    struct report_agreement found[AGREEMENTS_MAX];
    add_own(w, own, "actual", "", wave);
    add_own(w, own, "predicted", "", learned);
    add_own(w, own, "off", "", far_off);
    add_own(w, own, "flat", "", flat);
    add_own(w, own, "short", "", in_few);
    assert_int_equal(program_agreements(&w->report, found), 1);
    assert_ptr_equal(found[0].a, &w->report.own[0]);
    assert_ptr_equal(found[0].b, &w->report.own[1]);
    assert_true(found[0].correlation > 0.98 && found[0].correlation < 1);
    assert_true(fabs(found[0].first_half - 0.2) < 1e-9 && found[0].second_half == 0);
    assert_true(fabs(found[0].difference - 0.2 / sqrt(2)) < 1e-9);
    assert_int_equal(found[0].buckets, BUCKETS);
    // Neither metrics of different units agree, nor counters, nor series with different tags.
    w->report.own[1].unit = STR("seconds");
    assert_int_equal(program_agreements(&w->report, found), 0);
    w->report.own[0].unit = STR("seconds");
    assert_int_equal(program_agreements(&w->report, found), 1);
    own->lines[1][0].part = STR("rank=1");
    assert_int_equal(program_agreements(&w->report, found), 0);
    own->lines[0][0].part = STR("rank=1");
    assert_int_equal(program_agreements(&w->report, found), 1);
    w->report.own[1].counter = true;
    assert_int_equal(program_agreements(&w->report, found), 0);
    free(own);
    end(w);
}

static double busy_in_the_first_fifth(size_t bucket, double value)
{
    return bucket < BUCKETS / 5 ? value : value / 4;
}

static struct report_span take(struct span_cpu *c)
{
    struct report_span row = {.cpu_within = (double)NAN, .cpu_outside = (double)NAN};
    span_cpu_take(c, &row);
    return row;
}

static void processors_are_busier_within_spans(void **state)
{
    (void)state;
    struct world *w = begin();
    w->report.measures[REPORT_CPU].count = 0;
    add(w, REPORT_CPU, "n1", "", busy_in_the_first_fifth, 80);
    add(w, REPORT_CPU, "n2", "", steady, 1);
    // A sample describes the time before it: bucket i holds the use in [10 i - 10, 10 i).
    w->report.sample_ns = BUCKET_S * second;
    struct span_cpu *c = span_cpu_create(&w->report);
    assert_non_null(c);
    // The spans are those of the busy time, on one of two nodes; two ranks run at the same time.
    for (int rank = 0; rank < 2; rank++)
        for (int64_t at = -BUCKET_S; at < (BUCKETS / 5 - 1) * BUCKET_S; at += BUCKET_S)
            span_cpu_add(c, STR("n1"), at * second, (at + BUCKET_S) * second);
    span_cpu_add(c, STR("n9"), 0, 1000 * second); // a node without data
    struct report_span row = take(c);
    assert_true(fabs(row.cpu_within - 80) < 1e-9 && fabs(row.cpu_outside - 20) < 1e-9);
    // The taken spans are forgotten. A span over all of the time has nothing outside.
    row = take(c);
    assert_true(isnan(row.cpu_within) && isnan(row.cpu_outside));
    span_cpu_add(c, STR("n1"), -1000 * second, 100000 * second);
    row = take(c);
    assert_true(isnan(row.cpu_within) && isnan(row.cpu_outside));
    // Spans of a fifth of a bucket share it with what runs beside them.
    for (int64_t at = -BUCKET_S; at < (BUCKETS / 5 - 1) * BUCKET_S; at += BUCKET_S)
        span_cpu_add(c, STR("n1"), (at + 3) * second, (at + 5) * second);
    row = take(c);
    assert_true(fabs(row.cpu_within - 80) < 1e-9);
    assert_true(row.cpu_outside > 20 && row.cpu_outside < 35);
    // Too few: less than a bucket in all.
    span_cpu_add(c, STR("n1"), 3 * second, 12 * second);
    row = take(c);
    assert_true(isnan(row.cpu_within));
    span_cpu_destroy(c);
    span_cpu_destroy(NULL);
    end(w);
}

static void expect(struct str text, const char *words)
{
    if (str_find(text, str_of(words)) < 0)
        fail_msg("'%.*s' does not say '%s'", STR_ARG(text), words);
}

static void the_text_says_it(void **state)
{
    (void)state;
    struct world *w = begin();
    struct own *own = with_own();
    struct buf out = {0};
    add_own(w, own, "actual", "", wave);
    add_own(w, own, "predicted", "", learned);
    w->report.spans[0] = (struct report_span){.name = STR("training"),
                                              .count = 9,
                                              .imbalance = (double)NAN,
                                              .gpu_idle = (double)NAN,
                                              .cpu_within = 80,
                                              .cpu_outside = 20};
    w->report.spans[1] = w->report.spans[0];
    w->report.spans[1].name = STR("inference");
    w->report.spans[1].cpu_within = 24.9;
    w->report.span_count = 2;
    report_text(&w->report, &out);
    struct str text = buf_str(&out);
    expect(text, "follows predicted: correlation 0.9");
    expect(text, "differences of 0.141 (root mean square),\n  0.2 in the first half and 0 in the");
    expect(text, "CPU 80 %, 20 % while none runs");
    assert_true(str_find(text, STR("CPU 25 %")) < 0); // a difference of less than 5 %
    buf_free(&out);
    report_json(&w->report, &out);
    expect(buf_str(&out), "\"cpu_percent\":24.9,\"cpu_percent_outside\":20");
    expect(buf_str(&out), "\"agreements\":[{\"metrics\":[\"actual\",\"predicted\"],");
    buf_free(&out);
    report_html(&w->report, &out);
    expect(buf_str(&out), "actual follows predicted: correlation 0.9");
    expect(buf_str(&out), "<td>80 %<td>20 %");
    buf_free(&out);
    free(own);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_cover_all_series),
        cmocka_unit_test(first_and_last_skip_time_without_values),
        cmocka_unit_test(counters_have_a_total),
        cmocka_unit_test(a_prediction_agrees_with_its_value),
        cmocka_unit_test(processors_are_busier_within_spans),
        cmocka_unit_test(the_text_says_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
