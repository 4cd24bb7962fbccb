#include "export/span_values.h"

#include "base/array.h"
#include "query/labels.h"
#include "query/spans.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
    const char *ending;
    enum query_aggregator function;
} kinds[] = {{"count", QUERY_COUNT}, {"max", QUERY_MAX}, {"mean", QUERY_AVG}, {"min", QUERY_MIN}};

enum { KINDS = sizeof kinds / sizeof *kinds };

struct metric {
    struct store_metric own;
    struct store_metric made[KINDS];
};

struct series {
    const struct metric *metric;
    size_t kind;
    const struct store_label *labels;
    size_t label_count;
};

struct span_values {
    struct query query;
    const struct sources_view *view;
    struct arena arena; // holds the spans and the series
    struct query_span_list spans;
    struct series *series;
    size_t count, capacity;

    // Holds the result of the last query, because most series are requested metric by metric.
    struct arena results;
    struct query_result found;
    const struct metric *metric; // NULL: none
    size_t kind;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// ---------------------------------------------------------------- spans

struct listing {
    struct span_values *values;
    size_t file;
    struct error *e;
    int rc;
};

static bool list_span(const struct store_event *event, void *user)
{
    struct listing *l = user;
    const struct sources_view *view = l->values->view;
    l->rc = query_span_take(&l->values->spans, event,
                            store_reader_meta(source_reader(view->files[l->file]), STR("host")),
                            view->labels ? &view->labels[l->file] : NULL, l->e);
    return l->rc == 0;
}

static int list_spans(struct span_values *v, struct error *e)
{
    struct store_event_selection selection = {.from_ns = v->query.start_ns,
                                              .to_ns = v->query.end_ns,
                                              .kinds = 1u << STORE_SPAN,
                                              .name = v->query.spans.name};
    for (size_t i = 0; i < v->view->count; i++) {
        struct listing l = {v, i, e, 0};
        int rc = store_events_find(v->view->snapshots[i], &selection, list_span, &l);
        if (l.rc)
            return l.rc;
        if (rc)
            return error_set(e, rc, "cannot read the spans in %s: %s",
                             source_path(v->view->files[i]), strerror(-rc));
    }
    return v->spans.count ? 0
                          : error_set(e, -ENOENT,
                                      "there is no span '%.*s'; sonde query --spans "
                                      "names them",
                                      STR_ARG(v->query.spans.name));
}

int span_values_open(const struct query *q, struct str span, const struct sources_view *view,
                     struct span_values **out, struct error *e)
{
    struct span_values *v = *out = calloc(1, sizeof *v);
    if (!v)
        return no_memory(e);
    v->query = *q;
    v->query.spans = (struct query_spans){.name = span};
    v->query.downsample = (struct query_downsample){.on = true, .all = true};
    v->view = view;
    v->spans = (struct query_span_list){.query = &v->query, .arena = &v->arena};
    return list_spans(v, e);
}

void span_values_close(struct span_values *v)
{
    if (!v)
        return;
    arena_free(&v->arena);
    arena_free(&v->results);
    free(v->series);
    free(v);
}

// ---------------------------------------------------------------- values

static int run_query(void *user, const struct query *q, struct arena *arena,
                     struct query_result *out, struct error *e)
{
    static const struct query_limits limits = {.points_max = UINT64_MAX};
    const struct span_values *v = user;
    return query_run(q, v->view->snapshots, v->view->count, &limits, arena, out, e);
}

static int compute(struct span_values *v, const struct metric *metric, size_t kind, struct error *e)
{
    if (v->metric == metric && v->kind == kind)
        return 0;
    arena_reset(&v->results);
    v->metric = NULL;
    v->query.metric = metric->own.name;
    v->query.downsample.function = kinds[kind].function;
    int rc = query_per_span(&v->query, &v->spans, run_query, v, &v->results, &v->found, e);
    if (rc)
        return rc;
    v->metric = metric;
    v->kind = kind;
    return 0;
}

static struct metric *make_metric(struct span_values *v, const struct store_metric *own)
{
    struct metric *m = arena_zalloc(&v->arena, sizeof *m);
    if (!m)
        return NULL;
    m->own = *own;
    for (size_t k = 0; k < KINDS; k++) {
        char *name = arena_printf(&v->arena, "%.*s_%s", STR_ARG(own->name), kinds[k].ending);
        if (!name)
            return NULL;
        m->made[k] = (struct store_metric){.name = str_of(name), .level = own->level};
        if (kinds[k].function != QUERY_COUNT)
            m->made[k].unit = own->unit;
    }
    return m;
}

static struct store_label *copy_labels(struct arena *arena, const struct query_series *s)
{
    struct store_label *labels = arena_array(arena, s->tag_count, sizeof *labels);
    for (size_t i = 0; labels && i < s->tag_count; i++) {
        labels[i] = (struct store_label){arena_str(arena, s->tags[i].key),
                                         arena_str(arena, s->tags[i].value)};
        if (!labels[i].key.data || !labels[i].value.data)
            return NULL;
    }
    return labels;
}

int span_values_add(struct span_values *v, const struct store_metric *metric, struct error *e)
{
    struct metric *m = make_metric(v, metric);
    int rc = m ? compute(v, m, 0, e) : no_memory(e);
    size_t first = v->count, count = rc ? 0 : v->found.count;
    if (rc)
        return rc;
    if (!array_room(&v->series, &v->capacity, v->count + count * KINDS, sizeof *v->series))
        return no_memory(e);
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < count; i++) {
            const struct query_series *s = &v->found.series[i];
            const struct store_label *labels =
                k ? v->series[first + i].labels : copy_labels(&v->arena, s);
            if (!labels)
                return no_memory(e);
            v->series[v->count++] = (struct series){m, k, labels, s->tag_count};
        }
    }
    return 0;
}

size_t span_values_count(const struct span_values *v)
{
    return v->count;
}

struct span_values_series span_values_series(const struct span_values *v, size_t index)
{
    const struct series *s = &v->series[index];
    return (struct span_values_series){&s->metric->made[s->kind], s->labels, s->label_count};
}

// Passes on the points in the range whose values are not NaN.
static int give(const struct query_series *s, int64_t from_ns, int64_t to_ns,
                export_points_fn *take, void *user)
{
    for (size_t i = 0; i < s->count; i++) {
        struct export_points one = {&s->t_ns[i], &s->values[i], 1};
        if (s->t_ns[i] < from_ns || s->t_ns[i] > to_ns || s->values[i] != s->values[i])
            continue;
        int rc = take(&one, user);
        if (rc)
            return rc;
    }
    return 0;
}

int span_values_points(struct span_values *v, size_t index, int64_t from_ns, int64_t to_ns,
                       export_points_fn *take, void *user, struct error *e)
{
    const struct series *s = &v->series[index];
    int rc = compute(v, s->metric, s->kind, e);
    for (size_t i = 0; i < v->found.count && !rc; i++) {
        const struct query_series *found = &v->found.series[i];
        if (!query_labels_compare(found->tags, found->tag_count, s->labels, s->label_count))
            return give(found, from_ns, to_ns, take, user);
    }
    return rc;
}
