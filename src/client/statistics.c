#include "client/statistics.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "client/expression.h"
#include "client/integral.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLICE_LEAST_NS = NS_PER_MS }; // a slice that is too large is halved, down to this length

// A span from the list of spans.
struct span {
    int64_t start_ns, end_ns; // end_ns is exclusive
    struct sonde_tag *tags;   // without the node
    size_t tag_count;
};

struct row_state {
    struct distribution values;
    bool some_estimated; // the server has estimated quantiles
};

// One series in one pass; a pass covers the whole range, or a span.
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
    struct row_state *states; // parallel to out->rows
    size_t row_capacity, state_capacity;
    struct map rows; // tags (and the span) as text → row + 1
    const struct span *span;
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
                         w->request->expression);
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

static const char *tag_value(const struct sonde_tag *tags, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tags[i].key, key) == 0)
            return tags[i].value;
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct sonde_tag *)a)->key, ((const struct sonde_tag *)b)->key);
}

// The tags of a series and of the span, sorted, with copied texts.
static struct sonde_tag *join_tags(struct arena *arena, const struct sonde_series *s,
                                   const struct span *span, size_t *count)
{
    size_t n = 0;
    struct sonde_tag *tags =
        arena_array(arena, s->tag_count + (span ? span->tag_count : 0), sizeof *tags);
    for (size_t i = 0; tags && i < s->tag_count; i++)
        tags[n++] = s->tags[i];
    for (size_t i = 0; tags && span && i < span->tag_count; i++)
        if (!tag_value(s->tags, s->tag_count, span->tags[i].key))
            tags[n++] = span->tags[i];
    for (size_t i = 0; tags && i < n; i++) {
        tags[i].key = arena_strdup(arena, str_of(tags[i].key));
        tags[i].value = arena_strdup(arena, str_of(tags[i].value));
        if (!tags[i].key || !tags[i].value)
            return NULL;
    }
    if (tags && n)
        qsort(tags, n, sizeof *tags, by_key);
    *count = n;
    return tags;
}

static void add_key(struct buf *key, const char *name, const char *value)
{
    buf_add(key, name, strlen(name) + 1);
    buf_add(key, value, strlen(value) + 1);
}

// Moves those `tags` whose keys form the groups to the front; returns their number.
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
    w->states[s->count] = (struct row_state){0};
    s->rows[s->count++] =
        (struct sonde_stats_row){.tags = tags, .tag_count = count, .integral = NAN};
    if (w->span && !w->request->by) {
        s->rows[s->count - 1].span_start_ns = w->span->start_ns;
        s->rows[s->count - 1].span_end_ns = w->span->end_ns;
    }
    return true;
}

// The row of a series; SIZE_MAX: out of memory.
static size_t row_of(struct work *w, const struct sonde_series *series)
{
    size_t count;
    struct sonde_tag *tags = join_tags(&w->out->arena, series, w->span, &count);
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

// NULL: out of memory.
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
    row->max_tags = join_tags(&w->out->arena, s, w->span, &row->max_tag_count);
    return row->max_tags ? 0 : no_memory(w);
}

static int take_series(struct work *w, const struct sonde_series *s)
{
    struct series_state *state = NULL;
    bool counter = s->kind == SONDE_COUNTER && !w->out->rate, new_largest = false;
    struct sonde_stats_row *row = NULL;
    struct row_state *values = NULL;
    for (size_t i = 0; i < s->count; i++) {
        double value = s->values[i];
        int64_t t_ns = s->time_ns[i];
        if (isnan(value) || (w->span && t_ns >= w->span->end_ns))
            continue;
        if (!state) {
            state = state_of(w, s);
            if (!state)
                return no_memory(w);
            row = &w->out->rows[state->row];
            values = &w->states[state->row];
            values->some_estimated |= s->estimated;
        }
        // the earliest of equal extremes wins, whatever the order of series
        bool none = !values->values.count;
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
        int rc = distribution_add(&w->room, &values->values, value, w->request->quantiles, w->e);
        if (rc)
            return rc;
        if (!counter && !integral_add(&state->integral, t_ns, value))
            return no_memory(w);
    }
    return new_largest ? take_largest(w, row, s) : 0;
}

static int take_result(struct work *w, const struct sonde_result *r)
{
    int rc = 0;
    for (size_t i = 0; i < r->count && !rc; i++) {
        const struct sonde_series *s = &r->series[i];
        if (!w->out->metric) {
            w->out->metric = arena_strdup(&w->out->arena, str_of(s->metric));
            w->out->unit = arena_strdup(&w->out->arena, str_of(s->unit));
            if (!w->out->metric || !w->out->unit)
                return no_memory(w);
        }
        rc = take_series(w, s);
    }
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

// Counts the points of the series from their summaries.
static int count_points(struct work *w, int64_t from_ns, int64_t to_ns, double *out)
{
    struct sonde_query q = w->expression.query;
    struct sonde_result *r;
    *out = 0;
    q.downsample = "0all-count";
    q.rate = q.counter = q.drop_resets = false;
    int rc = ask(w, q, from_ns, to_ns + 1, &r);
    for (size_t i = 0; !rc && i < r->count; i++)
        *out += r->series[i].count ? r->series[i].values[0] : 0;
    sonde_result_free(r);
    return rc;
}

static int take_slices(struct work *w, int64_t from_ns, int64_t to_ns)
{
    double points = 0;
    int rc = can_be_cut(w) ? count_points(w, from_ns, to_ns, &points) : 0;
    int64_t slices = (int64_t)fmin(points / STATISTICS_SLICE_POINTS, STATISTICS_SLICES_MAX) + 1;
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
    if (from_ns <= to_ns) // a span has few points; otherwise the server returns an error
        rc = w->span ? take_range(w, from_ns, to_ns) : take_slices(w, from_ns, to_ns);
    end_pass(w);
    return rc;
}

// ---------------------------------------------------------------- spans

static void add_time(struct buf *path, const char *key, int64_t t_ns)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%09lld", (long long)(t_ns / NS_PER_S),
             (long long)(t_ns % NS_PER_S));
    client_add_parameter(path, key, text);
}

static bool read_span(const json_t *row, struct arena *arena, struct span *out)
{
    json_t *tags = json_object_get(row, "tags"), *value;
    const char *key;
    *out = (struct span){.start_ns = client_time_of(row, "start_ns", 0),
                         .end_ns = client_time_of(row, "end_ns", INT64_MAX)};
    out->tags = arena_array(arena, json_object_size(tags), sizeof *out->tags);
    if (!out->tags)
        return false;
    json_object_foreach(tags, key, value)
    {
        if (strcmp(key, "host") == 0)
            continue;
        struct sonde_tag tag = {arena_strdup(arena, str_of(key)),
                                arena_strdup(arena, str_of(json_string_value(value)))};
        if (!tag.key || !tag.value)
            return false;
        out->tags[out->tag_count++] = tag;
    }
    return true;
}

static int list_spans(struct work *w, struct arena *arena, struct span **out, size_t *count)
{
    struct buf path = {0};
    json_t *rows;
    char *missing = NULL;
    buf_printf(&path, "/sonde/v1/spans?limit=0");
    client_add_parameter(&path, "name", w->request->span);
    if (w->request->start_ns) // a span may begin before its first point
        add_time(&path, "start", w->from_ns);
    add_time(&path, "end", w->to_ns);
    *count = 0;
    int rc = path.failed ? no_memory(w)
                         : client_list(w->client, buf_cstr(&path), "spans", &rows, &missing, w->e);
    buf_free(&path);
    if (rc)
        return rc;
    note_missing(w, missing);
    free(missing);
    struct span *spans = arena_array(arena, json_array_size(rows), sizeof *spans);
    for (size_t i = 0; spans && i < json_array_size(rows) && !rc; i++) {
        if (!read_span(json_array_get(rows, i), arena, &spans[*count]))
            rc = no_memory(w);
        else if ((!w->request->start_ns || spans[*count].start_ns >= w->from_ns) &&
                 spans[*count].start_ns <= w->to_ns)
            ++*count;
    }
    json_decref(rows);
    *out = spans;
    if (!spans)
        return no_memory(w);
    return rc || *count <= STATISTICS_SPANS_MAX
               ? rc
               : error_set(w->e, -E2BIG, "more than %d spans '%s': ask for less time",
                           STATISTICS_SPANS_MAX, w->request->span);
}

static int take_spans(struct work *w)
{
    struct arena arena = {0};
    struct span *spans;
    size_t count;
    int rc = w->expression.as_text || w->expression.parsed.rate.counter
                 ? error_set(w->e, -ENOTSUP, "there is no rate{counter} per span; use rate")
                 : list_spans(w, &arena, &spans, &count);
    for (size_t i = 0; !rc && i < count; i++) {
        w->span = &spans[i];
        int64_t last_ns = spans[i].end_ns - 1 < w->to_ns ? spans[i].end_ns - 1 : w->to_ns;
        rc = take_pass(w, spans[i].start_ns, last_ns);
    }
    w->span = NULL;
    arena_free(&arena);
    return rc;
}

// ---------------------------------------------------------------- all of it

// *found is false if no points are recorded. Unreadable files may be known only after this query.
static int find_range(struct work *w, bool *found)
{
    char *missing = NULL;
    int64_t first_ns, last_ns;
    int rc = client_range(w->client, &first_ns, &last_ns, &missing, w->e);
    note_missing(w, missing);
    free(missing);
    w->from_ns = client_bound_time(w->request->start_ns ? w->request->start_ns : first_ns);
    w->to_ns = client_bound_time(w->request->end_ns ? w->request->end_ns : last_ns);
    *found = last_ns > 0 && w->from_ns <= w->to_ns;
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
        row->count = d->count;
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
    int rc = expression_read(r->expression, &arena, &w.expression, e);
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
