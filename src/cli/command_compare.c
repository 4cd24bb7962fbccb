// command_compare.c - the differences between runs: their descriptions, the durations of their
// spans, and values of metrics. Each side has one or several runs. report/difference.h decides
// which differences are real.
#include "base/array.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/annotations.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/comparison.h"
#include "cli/data_request.h"
#include "cli/run_facts.h"
#include "launch/parameters.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NAMES_MAX = 4096,
    FACT_KEY_WIDTH = 20, // bytes in the table of changes, for a width of 80 columns
    FACT_WIDTH = 26,
    // if only a part of a long text differs, this many equal bytes are shown before it
    FACT_SAME = 6,
};
static const double LEAST_CHANGE = 0.01; // described in docs/compare.md

const char *const comparison_statistics[DIFFERENCE_STATISTICS] = {"mean", "p50", "p95", "total",
                                                                  "peak"};

// ---------------------------------------------------------------- --fail-if

struct condition {
    struct str name;
    enum difference_statistic statistic;
    double change; // 0.05: 5 % more; negative numbers mean less
};

static int read_condition(const char *text, struct condition *c, struct error *e)
{
    struct str rest = str_trim(str_of(text));
    size_t cut[2], found = 0;
    // searches from the end, because a name may contain blanks
    for (size_t i = rest.size; i > 0 && found < 2; i--)
        if (rest.data[i - 1] == ' ')
            cut[found++] = i - 1;
    bool good = found == 2;
    if (good) {
        struct str number = str_slice(rest, cut[0] + 1, rest.size);
        struct str statistic = str_trim(str_slice(rest, cut[1] + 1, cut[0]));
        c->name = str_trim(str_slice(rest, 0, cut[1]));
        bool percent = str_ends(number, STR("%"));
        number = str_slice(number, number.size && number.data[0] == '+', number.size - percent);
        good = percent && str_to_double(number, &c->change) && isfinite(c->change) &&
               c->change != 0 && c->name.size;
        c->change /= 100;
        int which = 0;
        while (which < DIFFERENCE_STATISTICS &&
               !str_eq(statistic, str_of(comparison_statistics[which])))
            which++;
        good = good && which < DIFFERENCE_STATISTICS;
        c->statistic = (enum difference_statistic)which;
    }
    return good ? 0
                : error_set(e, -EINVAL,
                            "--fail-if: '%.80s' is not a condition; write NAME, one of mean, p50, "
                            "p95, total, peak, and a change, as in 'step mean +5%%'",
                            text);
}

// True if the change is large enough, and not explained by noise alone.
static bool holds(const struct condition *c, const struct difference *d)
{
    const struct difference_estimate *x = &d->of[c->statistic];
    double change = difference_relative(x->before, x->after);
    if (isnan(change))
        change = x->after > 0 ? INFINITY : -INFINITY;
    return x->has_interval &&
           (c->change > 0 ? change >= c->change && x->low > 0 : change <= c->change && x->high < 0);
}

// ---------------------------------------------------------------- the runs of a side

static struct compared *find(struct comparison *c, const char *name, bool is_span)
{
    for (size_t i = 0; i < c->compared_count; i++)
        if (c->list[i]->is_span == is_span && strcmp(c->list[i]->name, name) == 0)
            return c->list[i];
    if (c->compared_count == NAMES_MAX ||
        !array_room(&c->list, &c->capacity, c->compared_count + 1, sizeof *c->list))
        return NULL;
    struct compared *fresh = calloc(1, sizeof *fresh);
    char *copy = strdup(name);
    if (!fresh || !copy) {
        free(fresh);
        free(copy);
        return NULL;
    }
    fresh->name = copy;
    fresh->is_span = is_span;
    c->list[c->compared_count++] = fresh;
    return fresh;
}

static int add_value(struct comparison *c, struct values *v, int64_t t_ns, double value)
{
    if (!array_room(&v->list, &v->capacity, v->count + 1, sizeof *v->list))
        return error_set(c->e, -ENOMEM, "out of memory");
    v->list[v->count++] = (struct timed){t_ns, value};
    return 0;
}

static int take_spans(struct comparison *c, struct data_request *a, int side, size_t run)
{
    static const struct data_range whole = {.start = "first", .end = "last"};
    json_t *spans;
    int rc =
        data_request_spans(a, &whole, options_text(c->o, OPT_COMPARE_SPAN), false, &spans, c->e);
    for (size_t i = 0; !rc && i < json_array_size(spans); i++) {
        const json_t *row = json_array_get(spans, i);
        int64_t start_ns = data_request_number(row, "start_ns");
        if (!json_object_get(row, "end_ns") ||
            json_object_get(json_object_get(row, "tags"), "unfinished"))
            continue;
        struct compared *x = find(c, data_request_text(row, "name"), true);
        if (!x)
            rc =
                error_set(c->e, -E2BIG, "more than %d names of spans: --span takes one", NAMES_MAX);
        else
            rc = add_value(c, &x->of[side][run], start_ns,
                           (double)(data_request_number(row, "end_ns") - start_ns) / NS_PER_S);
    }
    if (!rc)
        json_decref(spans);
    return rc;
}

static int take_metric(struct comparison *c, struct data_request *a, int side, size_t run)
{
    const char *text = options_text(c->o, OPT_COMPARE_METRIC);
    struct buf m = {0};
    struct arena arena = {0};
    struct query q = {0};
    struct sonde_result *result;
    struct str rest = str_of(text), name = str_cut(&rest, '{');
    buf_printf(&m, "%s%s", str_find_char(name, ':') < 0 ? "none:" : "", text);
    struct sonde_query query = {.m = buf_cstr(&m), .start = "first", .end = "last"};
    struct compared *x = find(c, text, false);
    int rc = x ? query_parse_m(buf_str(&m), &arena, &q, c->e)
               : error_set(c->e, -ENOMEM, "out of memory");
    if (!rc)
        rc = data_request_query(a, q.metric, &query, &result, c->e);
    if (!rc) {
        for (size_t i = 0; i < sonde_result_count(result) && !rc; i++) {
            const struct sonde_series *s = sonde_result_series(result, i);
            for (size_t k = 0; k < s->count && !rc; k++)
                if (isfinite(s->values[k]))
                    rc = add_value(c, &x->of[side][run], s->time_ns[k], s->values[k]);
        }
        sonde_result_free(result);
    }
    arena_free(&arena);
    buf_free(&m);
    return rc;
}

// Reads run.json, or job.json of a running job; a recording may have neither. If a description
// cannot be read, lists it as missing.
static bool read_description(struct comparison *c, struct data_request *a, const char *run,
                             struct job *out)
{
    static const char *const names[] = {JOB_RUN_FILE, JOB_FILE};
    struct target_options places = data_request_targets(c->o);
    struct target t;
    bool found = false;
    places.files = true;
    if (target_find(run, NULL, &places, &t, NULL) < 0)
        return false;
    char *slash = strrchr(t.path, '/');
    if (slash && folder_is_recording(slash + 1))
        *slash = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        char path[FOLDER_PATH_MAX + 16];
        struct error why = {0};
        snprintf(path, sizeof path, "%s/%s", t.path, names[i]);
        int rc = job_read(path, out, &why);
        found = rc == 0;
        if (rc && rc != -ENOENT)
            data_request_missing(a, why.text);
    }
    target_free(&t);
    return found;
}

static void take_parameters(const struct store_event *event, void *user)
{
    parameters_add_event(user, event);
}

// Reads the facts of a run. If the run has not ended, its parameters are only in the recordings of
// its nodes.
static void take_facts(struct comparison *c, struct data_request *a, int side, const char *run)
{
    struct job job = {0};
    struct parameters parameters = {0};
    bool known = read_description(c, a, run, &job);
    if (!json_object_get(job.about, "config") && !job.end_ns) {
        annotations_each(a->client, PARAMETERS_TAG, take_parameters, &parameters, NULL, NULL);
        job.about = job.about ? job.about : json_object();
        parameters_describe(&parameters, job.about);
    }
    json_int_t lost = json_integer_value(json_object_get(job.about, "config_lost"));
    if (lost) {
        char text[FOLDER_PATH_MAX + 64];
        snprintf(text, sizeof text, "%lld parameters of %.256s", (long long)lost, run);
        data_request_missing(a, text);
    }
    json_t *facts = known ? run_facts(&job) : run_facts_of(job.about);
    run_facts_join(c->facts[side], facts);
    json_decref(facts);
    parameters_free(&parameters);
    job_free(&job);
}

static int read_run(struct comparison *c, int side, size_t run, int *code)
{
    struct data_request a;
    char *const where[] = {c->runs[side][run], NULL};
    int rc = data_request_open(c->o, where, 1, &a, c->e);
    if (rc)
        return rc;
    rc = take_spans(c, &a, side, run);
    if (!rc && options_text(c->o, OPT_COMPARE_METRIC))
        rc = take_metric(c, &a, side, run);
    if (!rc)
        take_facts(c, &a, side, c->runs[side][run]);
    *code = data_request_close(&a, *code);
    return rc;
}

static int cut_runs(struct comparison *c, int side)
{
    c->words[side] = strdup(c->o->arguments[side]);
    c->facts[side] = json_object();
    for (char *at = c->words[side], *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        if (!*at || c->count[side] == COMPARE_RUNS_MAX)
            return error_set(c->e, -EINVAL,
                             *at ? "more than %d runs on a side"
                                 : "a run's name is empty: write RUN,RUN (at most %d)",
                             COMPARE_RUNS_MAX);
        c->runs[side][c->count[side]++] = at;
    }
    return c->words[side] && c->facts[side] ? 0 : error_set(c->e, -ENOMEM, "out of memory");
}

// ---------------------------------------------------------------- differences

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static bool make_plain(struct values *v)
{
    if (v->count)
        qsort(v->list, v->count, sizeof *v->list, by_time);
    v->plain = calloc(v->count + 1, sizeof *v->plain);
    for (size_t i = 0; v->plain && i < v->count; i++)
        v->plain[i] = v->list[i].value;
    return v->plain != NULL;
}

static bool compute(struct comparison *c, struct compared *x)
{
    struct difference_run runs[2][COMPARE_RUNS_MAX];
    size_t count[2] = {0};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < c->count[side]; i++) {
            struct values *v = &x->of[side][i];
            if (!v->count)
                continue;
            if (!make_plain(v))
                return false;
            runs[side][count[side]++] = (struct difference_run){v->plain, v->count};
        }
    x->on_both = count[0] && count[1];
    return !x->on_both || difference_of(runs[0], count[0], runs[1], count[1], &x->difference);
}

// Compares by verdict: higher (for spans: slower), then lower, then the rest. Then spans come
// before metrics, and the greater total comes first.
static int most_telling_first(const void *a, const void *b)
{
    const struct compared *x = *(struct compared *const *)a, *y = *(struct compared *const *)b;
    if (x->on_both != y->on_both)
        return x->on_both ? -1 : 1;
    // HIGHER is the last value of the enum.
    enum difference_verdict u = x->difference.verdict, v = y->difference.verdict;
    if (u != v)
        return (u < v) - (u > v);
    if (x->is_span != y->is_span)
        return x->is_span ? -1 : 1;
    double s = x->difference.of[DIFFERENCE_TOTAL].before,
           t = y->difference.of[DIFFERENCE_TOTAL].before;
    return s != t ? (s < t) - (s > t) : strcmp(x->name, y->name);
}

static int judge(struct comparison *c)
{
    size_t both = 0;
    bool room = true;
    struct difference *all = calloc(c->compared_count + 1, sizeof *all);
    for (size_t i = 0; i < c->compared_count && room; i++)
        room = compute(c, c->list[i]);
    for (size_t i = 0; all && i < c->compared_count; i++)
        if (c->list[i]->on_both)
            all[both++] = c->list[i]->difference;
    if (!all || !room) {
        free(all);
        return error_set(c->e, -ENOMEM, "out of memory");
    }
    difference_judge(all, both, LEAST_CHANGE);
    both = 0;
    for (size_t i = 0; i < c->compared_count; i++)
        if (c->list[i]->on_both)
            c->list[i]->difference.verdict = all[both++].verdict;
    free(all);
    if (c->compared_count)
        qsort(c->list, c->compared_count, sizeof *c->list, most_telling_first);
    return 0;
}

// ---------------------------------------------------------------- output

const char *comparison_verdict(const struct compared *x)
{
    static const char *const words[2][3] = {{"", "lower", "higher"}, {"", "faster", "slower"}};
    return words[x->is_span][x->difference.verdict];
}

static void add_value_cell(struct columns *t, const struct compared *x, double value)
{
    columns_cell(t, "%s%s", words_number(value).text, x->is_span ? "s" : "");
}

bool comparison_shows(const struct compared *x, enum difference_statistic statistic)
{
    return statistic != (x->is_span ? DIFFERENCE_PEAK : DIFFERENCE_TOTAL);
}

void comparison_change(const struct difference_estimate *e, char out[COMPARISON_CHANGE_MAX])
{
    double change = 100 * difference_relative(e->before, e->after), scale = 100 / fabs(e->before);
    if (isnan(change))
        snprintf(out, COMPARISON_CHANGE_MAX, "new");
    else if (!e->has_interval || e->before == 0)
        snprintf(out, COMPARISON_CHANGE_MAX, "%+.1f%%", change);
    else
        snprintf(out, COMPARISON_CHANGE_MAX, "%+.1f%% (%+.1f to %+.1f)", change, e->low * scale,
                 e->high * scale);
}

// Cuts a long text to the part that differs from the other one, and a few bytes before it.
static void add_fact(struct columns *t, const char *text, const char *other)
{
    struct buf part = {0};
    size_t same = 0;
    while (text && other && text[same] && text[same] == other[same])
        same++;
    bool is_long = text && strlen(text) > FACT_WIDTH && same > FACT_SAME;
    size_t from = is_long ? same - FACT_SAME : 0;
    while (from > 0 && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--; // not at the beginning of a UTF-8 character
    buf_printf(&part, "%s%s", from ? "…" : "", text ? text + from : "-");
    columns_cut_text(t, buf_str(&part), FACT_WIDTH);
    buf_free(&part);
}

size_t comparison_facts(const struct comparison *c, comparison_fact_fn *take, void *user)
{
    size_t count = 0;
    for (int turn = 0; turn < 2; turn++) {
        const char *key;
        json_t *value;
        json_object_foreach(c->facts[turn], key, value)
        {
            const char *before = json_string_value(json_object_get(c->facts[0], key)),
                       *after = json_string_value(json_object_get(c->facts[1], key));
            if ((turn && before) || (before && after && strcmp(before, after) == 0))
                continue;
            take(user, key, before, after);
            count++;
        }
    }
    return count;
}

static void add_row(void *user, const char *key, const char *before, const char *after)
{
    struct columns *t = user;
    columns_cut_text(t, str_of(key), FACT_KEY_WIDTH);
    add_fact(t, before, after);
    add_fact(t, after, before);
}

static void write_changes(const struct comparison *c, struct buf *out)
{
    static const char *const titles[] = {"changed", "before", "after"};
    struct columns t = {0};
    columns_titles(&t, titles, 3);
    if (comparison_facts(c, add_row, &t))
        columns_write(&t, out);
    else
        buf_printf(out, "The descriptions of the runs are the same.\n");
    columns_free(&t);
}

static void write_text(const struct comparison *c, struct buf *out)
{
    static const char *const titles[] = {"",      "statistic",     "before",
                                         "after", "change (95 %)", "verdict"};
    struct columns t = {0};
    size_t rows = 0;
    write_changes(c, out);
    buf_add_char(out, '\n');
    columns_titles(&t, titles, 6);
    for (size_t i = 0; i < c->compared_count; i++) {
        const struct compared *x = c->list[i];
        for (int which = 0; x->on_both && which < DIFFERENCE_STATISTICS; which++) {
            const struct difference_estimate *e = &x->difference.of[which];
            char change[COMPARISON_CHANGE_MAX];
            if (!comparison_shows(x, (enum difference_statistic)which))
                continue;
            rows++;
            comparison_change(e, change);
            columns_cut_text(&t, str_of(which ? "" : x->name), 20);
            columns_cell(&t, "%s", comparison_statistics[which]);
            add_value_cell(&t, x, e->before);
            add_value_cell(&t, x, e->after);
            columns_cell(&t, "%s", change);
            columns_cell(&t, "%s", which ? "" : comparison_verdict(x));
        }
    }
    if (rows)
        columns_write(&t, out);
    columns_free(&t);
    for (size_t i = 0; i < c->compared_count; i++)
        if (!c->list[i]->on_both) {
            printable_printf(out, "%s is on one side only", c->list[i]->name);
            buf_add_char(out, '\n');
        }
    if (!c->compared_count)
        buf_printf(out, "The runs have no spans; --metric compares values of a metric.\n");
    if (c->count[0] == 1 && c->count[1] == 1)
        buf_printf(out, "One run a side: how much runs differ without a change is unknown.\n");
}

static void write_facts_json(struct json_writer *w, const json_t *facts)
{
    const char *key;
    json_t *value;
    json_begin_object(w);
    json_object_foreach((json_t *)(uintptr_t)facts, key, value)
    {
        json_key_string(w, key, str_of(json_string_value(value)));
    }
    json_end_object(w);
}

static void write_json(const struct comparison *c, struct buf *out)
{
    struct json_writer w = json_to(out);
    json_begin_object(&w);
    json_key(&w, STR("before"));
    write_facts_json(&w, c->facts[0]);
    json_key(&w, STR("after"));
    write_facts_json(&w, c->facts[1]);
    json_key(&w, STR("differences"));
    json_begin_array(&w);
    for (size_t i = 0; i < c->compared_count; i++) {
        const struct compared *x = c->list[i];
        json_begin_object(&w);
        json_key_string(&w, "name", str_of(x->name));
        json_key_string(&w, "kind", x->is_span ? STR("span") : STR("metric"));
        json_key_bool(&w, "on_both_sides", x->on_both);
        if (x->on_both) {
            const struct difference *d = &x->difference;
            json_key_string(&w, "verdict", str_of(d->verdict ? comparison_verdict(x) : "same"));
            json_key_u64(&w, "count_before", d->count_before);
            json_key_u64(&w, "count_after", d->count_after);
            json_key_u64(&w, "warm_up_before", d->warm_up_before);
            json_key_u64(&w, "warm_up_after", d->warm_up_after);
        }
        for (int which = 0; x->on_both && which < DIFFERENCE_STATISTICS; which++) {
            const struct difference_estimate *e = &x->difference.of[which];
            json_key(&w, str_of(comparison_statistics[which]));
            json_begin_object(&w);
            json_key_double(&w, "before", e->before);
            json_key_double(&w, "after", e->after);
            if (e->has_interval) {
                json_key_double(&w, "low", e->low);
                json_key_double(&w, "high", e->high);
                json_key_double(&w, "p", e->p);
            }
            json_end_object(&w);
        }
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    buf_add_char(out, '\n');
}

static void comparison_free(struct comparison *c)
{
    for (size_t i = 0; i < c->compared_count; i++) {
        for (int side = 0; side < 2; side++)
            for (size_t run = 0; run < c->count[side]; run++) {
                free(c->list[i]->of[side][run].list);
                free(c->list[i]->of[side][run].plain);
            }
        free(c->list[i]->name);
        free(c->list[i]);
    }
    free(c->list);
    for (int side = 0; side < 2; side++) {
        free(c->words[side]);
        json_decref(c->facts[side]);
    }
}

static int failed_condition(const struct comparison *c, const struct condition *condition,
                            bool *failed, struct error *e)
{
    for (size_t i = 0; i < c->compared_count; i++)
        if (c->list[i]->on_both && str_eq(str_of(c->list[i]->name), condition->name)) {
            const struct difference *d = &c->list[i]->difference;
            *failed = holds(condition, d);
            if (!d->of[condition->statistic].has_interval)
                log_say("--fail-if: too few values, or runs, to tell a change of %s from noise; "
                        "the condition does not hold",
                        c->list[i]->name);
            return 0;
        }
    return error_set(e, -ENOENT, "--fail-if: no span or metric on both sides has the name %.*s",
                     STR_ARG(condition->name));
}

static int write_page(const struct comparison *c, const char *path, struct error *e)
{
    struct buf page = {0};
    comparison_html(c, &page);
    int rc = page.failed ? -ENOMEM : atomic_file_write(path, buf_str(&page), 0);
    buf_free(&page);
    if (rc)
        return error_set(e, rc, "cannot write %s: %s", path, strerror(-rc));
    log_say("wrote %s", path);
    return 0;
}

int command_compare(const struct options *o)
{
    struct error e;
    struct comparison c = {.o = o, .e = &e};
    struct condition condition = {0};
    struct buf out = {0};
    const char *fail_if = options_text(o, OPT_FAIL_IF);
    bool failed = false;
    int code = EXIT_OK, rc = fail_if ? read_condition(fail_if, &condition, &e) : 0;
    for (int side = 0; side < 2 && !rc; side++)
        rc = cut_runs(&c, side);
    int usage = rc;
    for (int side = 0; side < 2; side++)
        for (size_t run = 0; run < c.count[side] && !rc; run++)
            rc = read_run(&c, side, run, &code);
    if (!rc)
        rc = judge(&c);
    if (!rc && fail_if)
        rc = failed_condition(&c, &condition, &failed, &e);
    const char *page = options_text(o, OPT_COMPARE_OUTPUT);
    if (!rc && page)
        rc = write_page(&c, page, &e);
    if (!rc && options_flag(o, OPT_JSON))
        write_json(&c, &out);
    else if (!rc && !page)
        write_text(&c, &out);
    comparison_free(&c);
    if (rc)
        return command_failed(usage == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    rc = command_print(&out);
    return rc ? rc : failed ? EXIT_FOUND : code;
}
