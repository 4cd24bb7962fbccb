// findings_metrics.c - compares the series of every metric that measures a time, round by round.
#include "faces/native/findings.h"

#include "base/clock.h"
#include "base/search.h"
#include "collect/collect.h"

#include <errno.h>
#include <stdlib.h>

enum {
    METRICS_MAX = 16,
    VALUES_MAX = 100000, // of one metric
    ROUNDS_MOST = 360,   // longer rounds are less noisy; for 30 min, rounds of 5 s
    ROUNDS_LEAST = 8,    // fewer rounds show nothing, because the first five make a verdict
};
#define ROUND_LEAST_NS NS_PER_S
#define GRID_NS (10 * NS_PER_MS) // samples lie on whole multiples of their interval

static bool is_time(const struct store_metric *m)
{
    if (m->kind != STORE_GAUGE || collect_find(m->name))
        return false;
    return str_eq(m->unit, STR("seconds")) || str_eq(m->name, STR("slow-gpu")) ||
           str_ends(m->name, STR("_seconds"));
}

// Keeps the first METRICS_MAX names in their order, each once.
static void keep_name(struct str names[METRICS_MAX], size_t *count, struct str name)
{
    size_t at;
    SEARCH_FIRST(at, *count, str_compare(names[at], name) >= 0);
    if (at == METRICS_MAX || (at < *count && str_eq(names[at], name)))
        return;
    *count += *count < METRICS_MAX;
    memmove(names + at + 1, names + at, (*count - at - 1) * sizeof *names);
    names[at] = name;
}

// Lists the names of metrics that measure times, without duplicates. Without nodes to ask, the
// catalogues of the files suffice: the list of all their series is much longer.
static int list_metrics(struct findings_search *s, struct str names[METRICS_MAX], size_t *count)
{
    struct query_series_filter f = {.from_ns = INT64_MIN};
    const struct sources_view *view = &s->reading->view;
    const struct query_listed *all;
    size_t listed = 0, series;
    bool nodes = s->reading->from->hub != NULL;
    *count = 0;
    int rc = nodes ? reading_series(s->reading, &f, &all, &listed, s->e) : 0;
    for (size_t i = 0; i < listed && !rc; i++)
        if (is_time(all[i].metric))
            keep_name(names, count, all[i].metric->name);
    for (size_t i = 0; i < view->count && !nodes; i++)
        for (uint32_t id = 0; id < store_metric_count(view->snapshots[i]); id++) {
            const struct store_metric *m = store_metric_get(view->snapshots[i], id);
            store_metric_series(view->snapshots[i], id, &series);
            if (m && series && is_time(m))
                keep_name(names, count, m->name);
        }
    return rc;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// How a metric's range is cut into rounds.
struct cut {
    int64_t every_ns; // 0: too few points to compare
    int64_t first_ns, last_ns;
    size_t values; // maximum for all members together
    const struct query_listed *series;
    size_t series_count;
};

// A round is twice the usual step between two points, or longer to respect ROUNDS_MOST and
// `values_max`.
static int choose_rounds(struct findings_search *s, struct str name, size_t values_max,
                         struct cut *out)
{
    struct query_series_filter f = {.metric = name,
                                    .from_ns = INT64_MIN,
                                    .points = true,
                                    .points_from_ns = s->from_ns,
                                    .points_to_ns = s->to_ns,
                                    .grid_ns = GRID_NS};
    const struct query_listed *all;
    size_t count, steps = 0;
    int64_t longest_ns = 0; // the longest range of a series, because runs may lie days apart
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    *out = (struct cut){0};
    int rc = reading_series(s->reading, &f, &all, &count, s->e);
    if (rc)
        return rc;
    int64_t *step_ns = arena_array(s->arena, count, sizeof *step_ns);
    if (count && !step_ns)
        return findings_no_memory(s);
    for (size_t i = 0; i < count; i++) {
        const struct query_listed_points *p = &all[i].points;
        if (p->count < 2)
            continue;
        step_ns[steps++] = (p->last_ns - p->first_ns) / (int64_t)(p->count - 1);
        longest_ns = p->last_ns - p->first_ns > longest_ns ? p->last_ns - p->first_ns : longest_ns;
        first_ns = p->first_ns < first_ns ? p->first_ns : first_ns;
        last_ns = p->last_ns > last_ns ? p->last_ns : last_ns;
    }
    if (steps < 2 || steps > values_max / ROUNDS_LEAST)
        return 0;
    qsort(step_ns, steps, sizeof *step_ns, ascending);
    int64_t round_ns = 2 * step_ns[steps / 2];
    size_t most = values_max / steps < ROUNDS_MOST ? values_max / steps : ROUNDS_MOST;
    int64_t least_ns = longest_ns / (int64_t)most;
    round_ns = round_ns < least_ns ? least_ns : round_ns;
    round_ns = round_ns < ROUND_LEAST_NS ? ROUND_LEAST_NS : round_ns;
    // Whole seconds, so that an expression on the command line can express the same.
    out->every_ns = (round_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S;
    out->first_ns = first_ns - first_ns % out->every_ns; // answers exclude a partial bucket
    out->last_ns = last_ns;
    out->series = all;
    out->series_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct query_listed_points *p = &all[i].points;
        size_t rounds = p->count ? (size_t)((p->last_ns - p->first_ns) / out->every_ns) + 2 : 0;
        out->values += p->count < rounds ? (size_t)p->count : rounds;
    }
    return 0;
}

// Copies the listing's figures about the members of a metric.
static int note_points(struct findings_search *s, struct findings_measure *m, const struct cut *cut)
{
    struct buf name = {0};
    for (size_t i = 0; i < cut->series_count; i++) {
        name.size = 0;
        findings_member_name(&name, cut->series[i].labels, cut->series[i].label_count);
        long member = name.failed ? -1 : detect_find(m->rounds.detect, buf_str(&name));
        if (member >= 0)
            m->members[member].points = cut->series[i].points;
    }
    bool failed = name.failed;
    buf_free(&name);
    return failed ? findings_no_memory(s) : 0;
}

static int take_metric(struct findings_search *s, struct str name, const struct cut *cut)
{
    struct arena work = {0};
    struct query q;
    struct query_result result = {0};
    size_t members = cut->series_count, column = sizeof(int64_t) + sizeof(double);
    int rc = findings_reserve(s, 1, members, cut->values, cut->values * column);
    if (rc)
        return rc;
    char *m = arena_printf(&work, "none:%llds-avg:x", (long long)(cut->every_ns / NS_PER_S));
    rc = m ? query_parse_m(str_of(m), &work, &q, s->e) : findings_no_memory(s);
    if (!rc) {
        q.metric = name;
        q.start_ns = cut->first_ns;
        q.end_ns = cut->last_ns;
        rc = reading_run(s->reading, q, &work, &result, s->e);
    }
    for (size_t i = 0; i < result.count && !rc; i++) {
        const struct query_series *series = &result.series[i];
        rc = findings_reserve(s, s->measure_count + 1, members, cut->values, cut->values * column);
        if (rc)
            break;
        struct findings_measure *into = findings_find_measure(
            s, false, name, findings_tag(series->tags, series->tag_count, STR("job")));
        long member = into ? findings_find_member(s, into, series->tags, series->tag_count) : -1;
        if (member < 0)
            rc = findings_no_memory(s);
        else
            into->every_ns = cut->every_ns;
        for (size_t k = 0; k < series->count && !rc; k++)
            if (rounds_add(&into->rounds,
                           (struct rounds_sample){series->t_ns[k], series->t_ns[k], (size_t)member,
                                                  series->values[k]}) < 0)
                rc = findings_no_memory(s);
        s->values_left -= series->count < s->values_left ? series->count : s->values_left;
    }
    for (size_t i = 0; i < s->measure_count && !rc; i++)
        rc = note_points(s, &s->measures[i], cut);
    arena_free(&work);
    return rc;
}

int findings_compare_metrics(struct findings_search *s)
{
    struct str names[METRICS_MAX];
    size_t count;
    int rc = list_metrics(s, names, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        // A metric with few values leaves the rest of its share to later ones.
        size_t share = s->values_left / (count - i);
        struct cut cut;
        rc = choose_rounds(s, names[i], share < VALUES_MAX ? share : VALUES_MAX, &cut);
        if (!rc && cut.every_ns)
            rc = take_metric(s, names[i], &cut);
        if (!rc)
            rc = findings_judge(s);
    }
    return rc;
}
