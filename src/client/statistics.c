#include "client/statistics.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "client/expression.h"
#include "client/integral.h"
#include "client/peaks.h"
#include "client/span_list.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// upper bound for the number of points that a server reports
static const double COUNTED_MAX = 1e18;
enum { SLICE_LEAST_NS = NS_PER_MS }; // a slice that is too large is halved, down to this length

struct row_state {
    struct distribution values;
    bool some_estimated; // the server has estimated quantiles
    double counted;      // in a search, the number of points, which were not read,
    double best;         // and the highest value
};

// One series in one pass. A pass covers the whole range, or a span.
struct series_state {
    struct integral integral;
    size_t row;
};

struct work {
    struct sonde_client *client;
    const struct statistics_request *request;
    struct expression expression;
    struct statistics *out;
    struct error *e;
    int64_t from_ns, to_ns;
    struct distribution_room room;
    struct row_state *states; // one for each of out->rows
    size_t row_capacity, state_capacity;
    struct map rows; // tags (and the span) as text → row + 1
    const struct listed_span *span;
    bool searched; // the points of rows were only counted; only the highest ones were read
    // memory of the current pass
    struct arena pass;
    struct map series; // tags as text → number + 1
    struct series_state *all;
    size_t series_count, series_capacity;
};

static int no_memory(struct work *w)
{
    return error_set(w->e, -ENOMEM, "out of memory");
}

// ---------------------------------------------------------------- queries

static int timeout_ms(const struct work *w, int *out)
{
    int64_t left_ns = w->request->deadline_ns - clock_monotonic_ns();
    *out = 0;
    if (!w->request->deadline_ns)
        return 0;
    if (left_ns <= 0)
        return error_set(w->e, -ETIMEDOUT, "the statistics of %s took too long",
                         w->request->query ? w->request->query->metric : w->request->expression);
    *out = left_ns / NS_PER_MS < INT32_MAX ? (int)(left_ns / NS_PER_MS) + 1 : INT32_MAX;
    return 0;
}

static void note_missing(struct work *w, const char *names)
{
    struct buf *missing = &w->out->missing;
    if (names && str_find(buf_str(missing), str_of(names)) < 0)
        buf_printf(missing, "%s%s", missing->size ? ", " : "", names);
}

// Runs `q` in [from, to] for the series that match the span's tags.
static int ask(struct work *w, struct sonde_query q, int64_t from_ns, int64_t to_ns,
               struct sonde_result **out)
{
    int timeout, rc = timeout_ms(w, &timeout);
    size_t more = w->span ? w->span->tag_count : 0;
    struct sonde_filter *filters = calloc(q.filter_count + more + 1, sizeof *filters);
    *out = NULL;
    if (!rc && !filters)
        rc = no_memory(w);
    if (!rc) {
        if (q.filter_count)
            memcpy(filters, q.filters, q.filter_count * sizeof *filters);
        for (size_t i = 0; i < more; i++)
            filters[q.filter_count + i] = (struct sonde_filter){
                w->span->tags[i].key, "equal_or_absent", w->span->tags[i].value, false};
        q.filters = filters;
        q.filter_count += more;
        q.start_ns = from_ns;
        q.end_ns = to_ns;
        rc = client_query(w->client, &q, timeout, out, w->e);
    }
    if (!rc)
        note_missing(w, sonde_result_missing(*out));
    free(filters);
    return rc;
}

// ---------------------------------------------------------------- rows

static void add_key(struct buf *key, const char *name, const char *value)
{
    buf_add(key, name, strlen(name) + 1);
    buf_add(key, value, strlen(value) + 1);
}

// Moves the `tags` that define groups to the front. Returns their number.
static size_t keep_by(struct sonde_tag *tags, size_t count, const char *const *by)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; by[k]; k++)
            if (strcmp(by[k], tags[i].key) == 0) {
                tags[n++] = tags[i];
                break;
            }
    return n;
}

static bool add_row(struct work *w, const struct sonde_tag *tags, size_t count)
{
    struct statistics *s = w->out;
    if (!array_room(&s->rows, &w->row_capacity, s->count + 1, sizeof *s->rows) ||
        !array_room(&w->states, &w->state_capacity, s->count + 1, sizeof *w->states))
        return false;
    w->states[s->count] = (struct row_state){.best = NAN};
    s->rows[s->count++] =
        (struct sonde_stats_row){.tags = tags, .tag_count = count, .integral = NAN};
    if (w->span && !w->request->by) {
        s->rows[s->count - 1].span_start_ns = w->span->start_ns;
        s->rows[s->count - 1].span_end_ns = w->span->end_ns;
    }
    return true;
}

// Returns the row of a series, or SIZE_MAX if memory is exhausted.
static size_t row_of(struct work *w, const struct sonde_series *series)
{
    size_t count;
    struct sonde_tag *tags = span_join_tags(&w->out->arena, series, w->span, &count);
    struct buf key = {0};
    bool added = false;
    if (!tags)
        return SIZE_MAX;
    if (w->request->by)
        count = keep_by(tags, count, w->request->by);
    else if (w->span)
        buf_printf(&key, "%zu", (size_t)(uintptr_t)w->span);
    buf_add_char(&key, 0);
    for (size_t i = 0; i < count; i++)
        add_key(&key, tags[i].key, tags[i].value);
    struct str text = key.failed ? (struct str){0} : arena_str(&w->out->arena, buf_str(&key));
    uint64_t *number = text.data ? map_add(&w->rows, text, &added) : NULL;
    buf_free(&key);
    if (!number || (added && !add_row(w, tags, count)))
        return SIZE_MAX;
    if (added)
        *number = w->out->count;
    w->out->rows[*number - 1].series++;
    return (size_t)*number - 1;
}

// Returns NULL if memory is exhausted.
static struct series_state *state_of(struct work *w, const struct sonde_series *series)
{
    struct buf key = {0};
    bool added = false;
    buf_add_char(&key, 0);
    for (size_t i = 0; i < series->tag_count; i++)
        add_key(&key, series->tags[i].key, series->tags[i].value);
    struct str text = key.failed ? (struct str){0} : arena_str(&w->pass, buf_str(&key));
    uint64_t *number = text.data ? map_add(&w->series, text, &added) : NULL;
    buf_free(&key);
    if (!number ||
        (added && !array_room(&w->all, &w->series_capacity, w->series_count + 1, sizeof *w->all)))
        return NULL;
    if (added) {
        struct series_state s = {.integral.rate = w->out->rate, .row = row_of(w, series)};
        if (s.row == SIZE_MAX)
            return NULL;
        w->all[w->series_count] = s;
        *number = ++w->series_count;
    }
    return &w->all[*number - 1];
}

// ---------------------------------------------------------------- points

static int take_largest(struct work *w, struct sonde_stats_row *row, const struct sonde_series *s)
{
    row->max_tags = span_join_tags(&w->out->arena, s, w->span, &row->max_tag_count);
    return row->max_tags ? 0 : no_memory(w);
}

static int take_series(struct work *w, const struct sonde_series *s)
{
    bool counter = s->kind == SONDE_COUNTER && !w->out->rate, new_largest = false;
    size_t first = 0, end = s->count;
    while (w->span && end && s->time_ns[end - 1] >= w->span->end_ns)
        end--;
    while (first < end && isnan(s->values[first]))
        first++;
    struct series_state *state = first < end ? state_of(w, s) : NULL;
    if (first == end)
        return 0;
    if (!state)
        return no_memory(w);
    struct sonde_stats_row *row = &w->out->rows[state->row];
    struct row_state *values = &w->states[state->row];
    bool none = !values->values.count;
    values->some_estimated |= s->estimated;
    for (size_t i = first; i < end; i++) {
        double value = s->values[i];
        int64_t t_ns = s->time_ns[i];
        if (isnan(value))
            continue;
        // the earliest of equal extremes wins, whatever the order of series
        if (none || value < row->min || (value == row->min && t_ns < row->min_ns)) {
            row->min = value;
            row->min_ns = t_ns;
        }
        if (none || value > row->max || (value == row->max && t_ns < row->max_ns)) {
            row->max = value;
            row->max_ns = t_ns;
            new_largest = true;
        }
        if (none || t_ns < row->first_ns)
            row->first_ns = t_ns;
        if (none || t_ns > row->last_ns) {
            row->last_ns = t_ns;
            row->last = value;
        }
        none = false;
        if (!counter && !integral_add(&state->integral, t_ns, value))
            return no_memory(w);
    }
    int rc = distribution_add(&w->room, &values->values, s->values + first, end - first,
                              w->request->kind == STATISTICS_ALL, w->e);
    return rc || !new_largest ? rc : take_largest(w, row, s);
}

static int take_metric(struct work *w, const struct sonde_result *r)
{
    if (w->out->metric || !r->count)
        return 0;
    w->out->metric = arena_strdup(&w->out->arena, str_of(r->series[0].metric));
    w->out->unit = arena_strdup(&w->out->arena, str_of(r->series[0].unit));
    w->out->counter = r->series[0].kind == SONDE_COUNTER;
    return w->out->metric && w->out->unit ? 0 : no_memory(w);
}

static int take_result(struct work *w, const struct sonde_result *r)
{
    int rc = take_metric(w, r);
    for (size_t i = 0; i < r->count && !rc; i++)
        rc = take_series(w, &r->series[i]);
    return rc;
}

// True if a query over a range returns the same points as queries over its parts.
static bool can_be_cut(const struct work *w)
{
    const struct query *q = &w->expression.parsed;
    return !w->expression.as_text && q->aggregator == QUERY_NONE && !q->downsample.all &&
           !q->downsample.calendar && q->downsample.fill == QUERY_FILL_NONE;
}

// Moves a cut to the boundary of a bucket.
static int64_t cut_at(const struct work *w, int64_t t_ns)
{
    const struct query_downsample *d = &w->expression.parsed.downsample;
    return d->on && d->interval > 0 ? t_ns - t_ns % d->interval : t_ns;
}

static int take_range(struct work *w, int64_t from_ns, int64_t to_ns)
{
    struct sonde_result *r;
    int rc = ask(w, w->expression.query, from_ns, to_ns, &r);
    if (rc == -EFBIG && can_be_cut(w) && to_ns - from_ns > SLICE_LEAST_NS) {
        int64_t middle_ns = cut_at(w, from_ns + (to_ns - from_ns) / 2);
        if (middle_ns > from_ns) {
            rc = take_range(w, from_ns, middle_ns - 1);
            return rc ? rc : take_range(w, middle_ns, to_ns);
        }
    }
    if (!rc)
        rc = take_result(w, r);
    sonde_result_free(r);
    return rc;
}

static double only_value(const struct sonde_series *s)
{
    return s->count ? s->values[0] : (double)NAN;
}

// Requests one value of each series, from the summaries of its blocks.
static int ask_summaries(struct work *w, const char *downsample, int64_t from_ns, int64_t to_ns,
                         struct sonde_result **out)
{
    struct sonde_query q = w->expression.query;
    q.downsample = downsample;
    q.rate = q.counter = q.drop_resets = false;
    return ask(w, q, from_ns, to_ns + 1, out);
}

static int take_slices(struct work *w, int64_t from_ns, int64_t to_ns, double points)
{
    bool own = client_is_recording(w->client);
    int64_t most = own ? STATISTICS_OWN_SLICE_POINTS : STATISTICS_SLICE_POINTS,
            slices = (int64_t)fmin(points / (double)most, STATISTICS_SLICES_MAX) + 1;
    int rc = 0;
    int64_t length_ns = (to_ns - from_ns) / slices + 1, begin_ns = from_ns;
    for (int64_t i = 1; i <= slices && !rc; i++) {
        int64_t end_ns = i == slices ? to_ns + 1 : cut_at(w, from_ns + i * length_ns);
        if (end_ns > to_ns)
            end_ns = to_ns + 1;
        if (end_ns <= begin_ns)
            continue;
        rc = take_range(w, begin_ns, end_ns - 1);
        begin_ns = end_ns;
    }
    return rc;
}

// ---------------------------------------------------------------- peaks

// True if the highest points of blocks are also the highest points of the expression.
static bool summaries_have_peaks(const struct work *w)
{
    return w->request->kind == STATISTICS_PEAKS && can_be_cut(w) &&
           !w->expression.parsed.downsample.on && !w->expression.parsed.rate.on;
}

// Adds a series without its points.
static int take_counts(struct work *w, const struct sonde_result *counts)
{
    for (size_t i = 0; i < counts->count; i++) {
        double points = only_value(&counts->series[i]);
        const struct series_state *state = points > 0 ? state_of(w, &counts->series[i]) : NULL;
        if (points > 0 && !state)
            return no_memory(w);
        if (state)
            w->states[state->row].counted += points;
    }
    return 0;
}

// Searches the highest point of each series that has the highest value of its row.
static int search_peaks(struct work *w, int64_t from_ns, int64_t to_ns)
{
    struct sonde_result *r;
    int rc = ask_summaries(w, "0all-max", from_ns, to_ns, &r);
    rc = rc ? rc : take_metric(w, r);
    for (int times = 0; times < 2; times++)
        for (size_t i = 0; !rc && i < r->count; i++) {
            struct sonde_series s = r->series[i];
            double value = only_value(&s);
            const struct series_state *state = isnan(value) ? NULL : state_of(w, &s);
            double *best = state ? &w->states[state->row].best : NULL;
            int64_t t_ns;
            if (!isnan(value) && !state)
                rc = no_memory(w);
            else if (state && !times)
                *best = fmax(*best, value);
            if (!state || !times || value < *best)
                continue;
            rc = peak_time(w->client, &s, value, from_ns, to_ns, &t_ns, w->e);
            s.time_ns = &t_ns;
            if (!rc && t_ns >= 0)
                rc = take_series(w, &s);
        }
    sonde_result_free(r);
    w->searched = true;
    return rc;
}

// ---------------------------------------------------------------- a pass

// Reads the whole range. A search sends some requests for each row, so if the points are few,
// reading all of them is faster.
static int take_whole_range(struct work *w, int64_t from_ns, int64_t to_ns)
{
    struct sonde_result *counts;
    double points = 0;
    if (!can_be_cut(w))
        return take_slices(w, from_ns, to_ns, 0);
    int rc = ask_summaries(w, "0all-count", from_ns, to_ns, &counts);
    for (size_t i = 0; !rc && i < counts->count; i++)
        points += fmax(only_value(&counts->series[i]), 0);
    bool search = !rc && summaries_have_peaks(w) && points > PEAKS_SEARCH_POINTS_LEAST;
    if (search) {
        rc = take_counts(w, counts);
        search = points / (double)w->out->count > PEAKS_SEARCH_POINTS_LEAST;
    }
    sonde_result_free(counts);
    if (rc)
        return rc;
    return search ? search_peaks(w, from_ns, to_ns) : take_slices(w, from_ns, to_ns, points);
}

static void end_pass(struct work *w)
{
    for (size_t i = 0; i < w->series_count; i++) {
        struct sonde_stats_row *row = &w->out->rows[w->all[i].row];
        int64_t covered_ns;
        double integral = integral_value(&w->all[i].integral, &covered_ns);
        if (covered_ns) {
            row->integral = isnan(row->integral) ? integral : row->integral + integral;
            row->covered_ns += covered_ns;
        }
        integral_free(&w->all[i].integral);
    }
    w->series_count = 0;
    map_free(&w->series);
    w->series = (struct map){0};
    arena_reset(&w->pass);
}

static int take_pass(struct work *w, int64_t from_ns, int64_t to_ns)
{
    int rc = 0;
    if (from_ns <= to_ns) // a span has few points; if it has more, the server returns an error
        rc = w->span ? take_range(w, from_ns, to_ns) : take_whole_range(w, from_ns, to_ns);
    end_pass(w);
    return rc;
}

// ---------------------------------------------------------------- spans

static int take_spans(struct work *w)
{
    struct arena arena = {0};
    struct span_list list = {0};
    const char *name = w->request->span;
    char *missing = NULL;
    int rc = w->expression.as_text || w->expression.parsed.rate.counter
                 ? error_set(w->e, -ENOTSUP, "there is no rate{counter} per span; use rate")
                 // a span may begin before its first point
                 : span_list_read(w->client, name, w->request->start_ns ? w->from_ns : 0, w->to_ns,
                                  &arena, &list, &missing, w->e);
    note_missing(w, missing);
    free(missing);
    if (!rc && list.count > STATISTICS_SPANS_MAX)
        rc = error_set(w->e, -E2BIG, "more than %d spans '%s': ask for less time",
                       STATISTICS_SPANS_MAX, name);
    for (size_t i = 0; !rc && i < list.count; i++) {
        const struct listed_span *span = w->span = &list.spans[i];
        rc =
            take_pass(w, span->start_ns, span->end_ns - 1 < w->to_ns ? span->end_ns - 1 : w->to_ns);
    }
    w->span = NULL;
    arena_free(&arena);
    return rc;
}

// ---------------------------------------------------------------- the whole request

// Finds the range. *found is false if no points are recorded. Unreadable files may be reported only
// by this query.
static int find_range(struct work *w, bool *found)
{
    struct statistics_recorded recorded = {0};
    char *missing = NULL;
    int rc = 0;
    if (w->request->recorded)
        recorded = *w->request->recorded;
    else
        rc = client_range(w->client, &recorded.first_ns, &recorded.last_ns, &missing, w->e);
    note_missing(w, missing);
    free(missing);
    w->from_ns = client_bound_time(w->request->start_ns ? w->request->start_ns : recorded.first_ns);
    w->to_ns = client_bound_time(w->request->end_ns ? w->request->end_ns : recorded.last_ns);
    *found = recorded.last_ns > 0 && w->from_ns <= w->to_ns;
    return rc;
}

static const char *integral_unit(struct arena *arena, const char *unit, bool rate)
{
    if (rate)
        return unit;
    if (strcmp(unit, "watts") == 0)
        return "joules";
    return arena_printf(arena, "%s%sseconds", unit, *unit ? " " : "");
}

static int compare_tags(const struct sonde_stats_row *a, const struct sonde_stats_row *b)
{
    for (size_t i = 0; i < a->tag_count && i < b->tag_count; i++) {
        int order = strcmp(a->tags[i].key, b->tags[i].key);
        if (!order)
            order = str_compare_natural(str_of(a->tags[i].value), str_of(b->tags[i].value));
        if (order)
            return order;
    }
    return (a->tag_count > b->tag_count) - (a->tag_count < b->tag_count);
}

static int by_span_and_tags(const void *a, const void *b)
{
    const struct sonde_stats_row *x = a, *y = b;
    if (x->span_start_ns != y->span_start_ns)
        return x->span_start_ns < y->span_start_ns ? -1 : 1;
    if (x->span_end_ns != y->span_end_ns)
        return x->span_end_ns < y->span_end_ns ? -1 : 1;
    return compare_tags(x, y);
}

static void finish_rows(struct work *w)
{
    for (size_t i = 0; i < w->out->count; i++) {
        struct sonde_stats_row *row = &w->out->rows[i];
        struct distribution *d = &w->states[i].values;
        row->count = w->searched ? (uint64_t)fmin(w->states[i].counted, COUNTED_MAX) : d->count;
        row->mean = (double)d->mean;
        row->deviation = distribution_deviation(d);
        row->p50 = distribution_quantile(d, QUERY_P50);
        row->p95 = distribution_quantile(d, QUERY_P95);
        row->p99 = distribution_quantile(d, QUERY_P99);
        row->estimated = d->estimated || w->states[i].some_estimated;
    }
    if (w->out->count)
        qsort(w->out->rows, w->out->count, sizeof *w->out->rows, by_span_and_tags);
}

int statistics_of(struct sonde_client *c, const struct statistics_request *r,
                  struct statistics *out, struct error *e)
{
    struct arena arena = {0};
    struct work w = {.client = c, .request = r, .out = out, .e = e};
    bool found = false;
    *out = (struct statistics){0};
    distribution_room_begin(&w.room, STATISTICS_EXACT_MAX);
    int rc = r->query ? 0 : expression_read(r->expression, &arena, &w.expression, e);
    if (r->query)
        w.expression = (struct expression){{.aggregator = QUERY_NONE}, *r->query, false};
    out->rate = !rc && w.expression.parsed.rate.on;
    if (!rc)
        rc = find_range(&w, &found);
    if (!rc && found)
        rc = r->span ? take_spans(&w) : take_pass(&w, w.from_ns, w.to_ns);
    if (!rc)
        finish_rows(&w);
    if (!rc && out->metric)
        out->integral_unit = integral_unit(&out->arena, out->unit, out->rate);
    if (!rc && out->metric && !out->integral_unit)
        rc = no_memory(&w);
    for (size_t i = 0; i < out->count; i++)
        distribution_free(&w.room, &w.states[i].values);
    distribution_room_end(&w.room);
    map_free(&w.rows);
    free(w.states);
    free(w.all);
    arena_free(&w.pass);
    arena_free(&arena);
    return rc;
}

void statistics_free(struct statistics *s)
{
    free(s->rows);
    buf_free(&s->missing);
    arena_free(&s->arena);
    *s = (struct statistics){0};
}
