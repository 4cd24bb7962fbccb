// files.c - recordings as the source of an export. Cursors decode the points of a series block by
// block, and the export passes them on; nothing is encoded, sent or kept in between.
//
// The data are a snapshot of each file, opened at the beginning. A series that lies in several
// files is one series, as for a query (query/source.h).
#include "export/buckets.h"
#include "export/keys.h"
#include "export/span_values.h"

#include "ask/sources.h"
#include "base/array.h"
#include "query/source.h"

#include <errno.h>
#include <stdlib.h>

enum {
    MERGE_BYTES = 48 << 20, // memory for points of one series that overlap in several files
    // Unpacked blocks that all files together keep in memory for the next series, so that memory
    // stays below 100 MB. The other blocks are in a temporary file; without it, each of many files
    // keeps about one block.
    KEPT_BYTES = 64 << 20,
    KEPT_OF_A_FILE = 1 << 20,
};

struct files {
    struct export_source base;
    const struct export_selection *selection;
    struct export_judge judge;
    struct sources *sources;
    struct arena arena;
    struct sources_view view;
    bool viewed;
    struct store_overflow *overflow; // NULL: none

    struct query query;             // query for the current metric
    struct query_context selecting; // its plan has the selected series
    bool selects;
    struct export_series *series;
    const struct query_selected **selected; // one for each series; unused with `spans`
    struct span_values *spans;              // NULL: the points themselves are exported
    size_t *span_series;                    // one for each series
    size_t count, series_capacity, selected_capacity;
    struct keys keys;
};

static struct files *files_of(struct export_source *s)
{
    return (struct files *)(void *)s;
}

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// ---------------------------------------------------------------- series

// Returns the definition in the first file that has the metric.
static const struct store_metric *metric_of(const struct query_selected *series, struct str name)
{
    uint32_t id;
    return store_metric_find(series->part.store, name, &id)
               ? store_metric_get(series->part.store, id)
               : NULL;
}

static int add_series(struct files *f, const struct query_selected *found, struct error *e)
{
    if (!array_room(&f->series, &f->series_capacity, f->count + 1, sizeof *f->series) ||
        !array_room(&f->selected, &f->selected_capacity, f->count + 1, sizeof *f->selected) ||
        !keys_add(&f->keys, found->labels, found->label_count))
        return no_memory(e);
    f->series[f->count] = (struct export_series){.index = f->count,
                                                 .metric = metric_of(found, f->query.metric),
                                                 .labels = found->labels,
                                                 .label_count = found->label_count};
    f->selected[f->count++] = found;
    return 0;
}

static int compare_selected(const void *a, const void *b)
{
    const struct query_selected *x = *(const struct query_selected *const *)a,
                                *y = *(const struct query_selected *const *)b;
    return query_labels_compare(x->labels, x->label_count, y->labels, y->label_count);
}

// Sorts series by labels, because files hold them in order of arrival.
static void sort_series(struct files *f, size_t first)
{
    qsort(f->selected + first, f->count - first, sizeof(struct query_selected *), compare_selected);
    for (size_t i = first; i < f->count; i++) {
        f->series[i].metric = metric_of(f->selected[i], f->query.metric);
        f->series[i].labels = f->selected[i]->labels;
        f->series[i].label_count = f->selected[i]->label_count;
    }
}

static int select_metric(struct files *f, struct str name, struct error *e)
{
    struct query_selection found;
    f->query.metric = name;
    f->selecting.e = e;
    int rc = query_select(&f->selecting, f->view.snapshots, f->view.count, &found);
    if (!rc && f->spans)
        return found.count
                   ? span_values_add(f->spans, metric_of(&found.groups[0].series[0], name), e)
                   : 0;
    size_t first = f->count;
    for (size_t g = 0; g < found.count && !rc; g++)
        for (size_t i = 0; i < found.groups[g].count && !rc; i++)
            rc = add_series(f, &found.groups[g].series[i], e);
    if (!rc && f->count > first)
        sort_series(f, first);
    return rc;
}

static int compare_span_series(const void *a, const void *b)
{
    const struct export_series *x = a, *y = b;
    int order = str_compare(x->metric->name, y->metric->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

// Adds the series of all metrics. Series of different metrics may be interleaved in the order of
// names.
static int add_span_series(struct files *f, struct error *e)
{
    f->count = span_values_count(f->spans);
    f->span_series = calloc(f->count + 1, sizeof *f->span_series);
    if (!f->span_series ||
        !array_room(&f->series, &f->series_capacity, f->count, sizeof *f->series))
        return no_memory(e);
    for (size_t i = 0; i < f->count; i++) {
        struct span_values_series s = span_values_series(f->spans, i);
        f->series[i] = (struct export_series){i, s.metric, s.labels, s.label_count};
        if (!keys_add(&f->keys, s.labels, s.label_count))
            return no_memory(e);
    }
    if (f->count)
        qsort(f->series, f->count, sizeof *f->series, compare_span_series);
    for (size_t i = 0; i < f->count; i++) {
        f->span_series[i] = f->series[i].index;
        f->series[i].index = i;
    }
    return 0;
}

static int select_all(struct files *f, struct error *e)
{
    static const struct query_limits limits = {
        .memory_bytes = SIZE_MAX / 4, .series_max = UINT64_MAX, .points_max = UINT64_MAX};
    const struct str *names;
    size_t count;
    int rc = query_suggest(f->view.snapshots, f->view.count, STR("metrics"), STR(""), false,
                           SIZE_MAX, &f->arena, &names, &count, e);
    if (rc)
        return rc;
    struct str unknown = export_judge_unknown(&f->judge, names, count);
    if (unknown.size)
        return error_set(e, -ENOENT, "there is no metric '%.*s'; sonde query --list names them",
                         STR_ARG(unknown));
    f->query = (struct query){.aggregator = QUERY_NONE,
                              .downsample = f->selection->downsample,
                              .start_ns = f->base.first_ns,
                              .end_ns = f->base.last_ns,
                              .filters = f->judge.filters,
                              .filter_count = f->judge.filter_count,
                              .store_labels = f->view.labels};
    query_context_begin(&f->selecting, &f->query, &limits, &f->arena, e);
    f->selects = true;
    if (f->selection->span.size)
        rc = span_values_open(&f->query, f->selection->span, &f->view, &f->spans, e);
    for (size_t i = 0; i < count && !rc; i++)
        if (export_judge_metric(&f->judge, names[i]))
            rc = select_metric(f, names[i], e);
    return rc || !f->spans ? rc : add_span_series(f, e);
}

// ---------------------------------------------------------------- points

struct taking {
    export_points_fn *take;
    void *user;
    struct error *e;
};

static int give(const struct taking *to, const int64_t *t, const double *v, size_t count)
{
    int rc = 0;
    for (size_t at = 0; at < count && !rc; at += EXPORT_POINTS_MAX) {
        size_t left = count - at;
        struct export_points p = {t + at, v + at,
                                  left < EXPORT_POINTS_MAX ? left : (size_t)EXPORT_POINTS_MAX};
        rc = to->take(&p, to->user);
    }
    return rc;
}

// *last_ns gets the time of the last point that was passed on.
static int read_range(struct query_context *c, const struct query_selected *series, int64_t from_ns,
                      int64_t to_ns, const struct taking *to, int64_t *last_ns)
{
    struct query_source source;
    int rc = query_source_open(&source, c, series, from_ns, to_ns), more = 0;
    while (!rc && (more = query_source_next(&source)) > 0) {
        const int64_t *t;
        const double *v;
        size_t count;
        rc = query_source_points(&source, &t, &v, &count);
        if (!rc && count) {
            *last_ns = t[count - 1];
            rc = give(to, t, v, count);
            if (rc)
                rc = to->e->code == -E2BIG ? error_set(to->e, -EFBIG, "%s", to->e->text) : rc;
        }
    }
    query_source_close(&source);
    arena_reset(&c->group);
    return rc ? rc : more;
}

// Passes on the points of a series. Points that overlap in several files are merged in memory; a
// range with too many points is halved.
static int files_points(struct export_source *s, size_t series, int64_t from_ns, int64_t to_ns,
                        export_points_fn *take, void *user, struct error *e)
{
    static const struct query_limits limits = {.memory_bytes = MERGE_BYTES,
                                               .points_max = UINT64_MAX};
    struct files *f = files_of(s);
    struct arena results = {0};
    struct taking to = {take, user, e};
    struct query_context c;
    int rc = 0;
    if (from_ns < s->first_ns)
        from_ns = s->first_ns;
    if (to_ns > s->last_ns)
        to_ns = s->last_ns;
    if (f->spans)
        return span_values_points(f->spans, f->span_series[series], from_ns, to_ns, take, user, e);
    if (f->query.downsample.on)
        return buckets_read(&f->query, f->selected[series], from_ns, to_ns, take, user, e);
    int64_t until_ns = to_ns;
    query_context_begin(&c, &f->query, &limits, &results, e);
    while (!rc && from_ns <= to_ns) {
        int64_t last_ns = from_ns - 1;
        rc = read_range(&c, f->selected[series], from_ns, until_ns, &to, &last_ns);
        if (rc == -E2BIG && until_ns > from_ns) {
            from_ns = last_ns + 1;
            until_ns = from_ns + (until_ns - from_ns) / 2;
            rc = 0;
        } else if (!rc) {
            if (until_ns == to_ns)
                break;
            int64_t width = until_ns - from_ns + 1;
            from_ns = until_ns + 1;
            until_ns = to_ns - from_ns < width ? to_ns : from_ns + width;
        }
    }
    query_context_end(&c);
    arena_free(&results);
    return rc;
}

// ---------------------------------------------------------------- events

struct giving {
    struct files *files;
    export_event_fn *take;
    void *user;
    struct export_event event;
    // labels that all series and events of the file have in addition
    const struct store_label *more;
    struct store_label labels[STORE_LABELS_MAX + 1];
    int rc;
};

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct store_label *)a)->key, ((const struct store_label *)b)->key);
}

static bool give_event(const struct store_event *event, void *user)
{
    struct giving *g = user;
    size_t n = event->label_count < STORE_LABELS_MAX ? event->label_count : STORE_LABELS_MAX;
    bool lacks = g->more && g->more->key.size;
    for (size_t i = 0; i < n; i++) {
        g->labels[i] = event->labels[i];
        lacks = lacks && !str_eq(event->labels[i].key, g->more->key);
    }
    if (lacks)
        g->labels[n++] = *g->more;
    qsort(g->labels, n, sizeof *g->labels, by_key);
    g->event.event = *event;
    g->event.event.labels = g->labels;
    g->event.event.label_count = n;
    if (export_judge_event(&g->files->judge, &g->event))
        g->rc = g->take(&g->event, g->user);
    return g->rc == 0;
}

static int files_events(struct export_source *s, export_event_fn *take, void *user, struct error *e)
{
    struct files *f = files_of(s);
    struct store_event_selection selection = {.from_ns = f->selection->from_ns,
                                              .to_ns = f->selection->to_ns};
    for (size_t i = 0; i < f->view.count; i++) {
        const struct store_reader *reader = source_reader(f->view.files[i]);
        struct giving g = {.files = f,
                           .take = take,
                           .user = user,
                           .event = {.node = store_reader_meta(reader, STR("host"))},
                           .more = f->view.labels ? &f->view.labels[i] : NULL};
        int rc = store_events_find(f->view.snapshots[i], &selection, give_event, &g);
        if (g.rc)
            return g.rc;
        if (rc)
            return error_set(e, rc, "cannot read the spans in %s: %s",
                             source_path(f->view.files[i]), strerror(-rc));
    }
    return 0;
}

static int note_keys(const struct export_event *event, void *user)
{
    struct files *f = user;
    return keys_add(&f->keys, event->event.labels, event->event.label_count) ? 0 : -ENOMEM;
}

// ---------------------------------------------------------------- missing data

static size_t files_missing(struct export_source *s, struct buf *out)
{
    struct files *f = files_of(s);
    size_t count = 0;
    for (size_t i = 0; i < f->view.unreadable_count; i++, count++)
        buf_printf(out, "%s\n", source_problem(f->view.unreadable[i]));
    if (f->view.left_out) {
        buf_printf(out, "%zu files beyond the limit of %d\n", f->view.left_out, SOURCES_FILES_MAX);
        count++;
    }
    for (size_t i = 0; i < f->view.count; i++) {
        struct store_damage damage;
        store_reader_damage(source_reader(f->view.files[i]), &damage);
        if (!damage.blocks)
            continue;
        buf_printf(out, "%s: %llu damaged places: %s\n", source_path(f->view.files[i]),
                   (unsigned long long)damage.blocks, damage.first);
        count++;
    }
    return count;
}

// ---------------------------------------------------------------- open, close

static void files_close(struct export_source *s)
{
    struct files *f = files_of(s);
    span_values_close(f->spans);
    if (f->selects)
        query_context_end(&f->selecting);
    if (f->viewed)
        sources_close(&f->view);
    store_overflow_close(f->overflow);
    if (f->sources)
        sources_destroy(f->sources);
    export_judge_free(&f->judge);
    keys_free(&f->keys);
    arena_free(&f->arena);
    free(f->series);
    free(f->selected);
    free(f->span_series);
    free(f);
}

static const struct export_source_kind kind = {files_points, files_events, files_missing,
                                               files_close};

// Widens the range, because buckets and spans begin before their first point, and 0all excludes the
// end of the range.
static int widen_range(struct files *f, struct error *e)
{
    struct export_source *s = &f->base;
    const struct export_selection *selection = f->selection;
    if (s->first_ns > s->last_ns || (!selection->downsample.on && !selection->span.size))
        return 0;
    s->points_expected = 0; // the number of buckets with points is unknown
    int64_t begin_ns = selection->from_ns, end_ns;
    int rc = 0;
    if (selection->downsample.on)
        rc = buckets_bounds(&selection->downsample, s->first_ns, &begin_ns, &end_ns, e);
    if (!rc && begin_ns >= selection->from_ns)
        s->first_ns = begin_ns;
    if (selection->downsample.all && selection->to_ns == INT64_MAX && s->last_ns < INT64_MAX)
        s->last_ns++;
    return rc;
}

static void find_range(struct files *f)
{
    struct export_source *s = &f->base;
    s->first_ns = INT64_MAX;
    s->last_ns = INT64_MIN;
    for (size_t i = 0; i < f->view.count; i++) {
        int64_t first, last;
        if (!store_time_range(f->view.snapshots[i], &first, &last))
            continue;
        s->first_ns = first < s->first_ns ? first : s->first_ns;
        s->last_ns = last > s->last_ns ? last : s->last_ns;
        s->points_expected += source_points(f->sources, f->view.files[i], f->view.snapshots[i]);
    }
    if (s->first_ns < f->selection->from_ns)
        s->first_ns = f->selection->from_ns;
    if (s->last_ns > f->selection->to_ns)
        s->last_ns = f->selection->to_ns;
}

static int open_view(struct files *f, const char *const *paths, size_t count, struct error *e)
{
    int rc = sources_create(paths, count, true, &f->sources, e);
    if (!rc)
        rc = sources_open(f->sources, &f->arena, &f->view, e);
    if (rc)
        return rc;
    f->viewed = true;
    size_t kept = f->view.count ? KEPT_BYTES / f->view.count : 0;
    f->overflow = f->selection->temporary ? store_overflow_open(f->selection->temporary) : NULL;
    for (size_t i = 0; i < f->view.count; i++) {
        store_snapshot_keep_at_most(f->view.snapshots[i], f->overflow || kept > KEPT_OF_A_FILE
                                                              ? kept
                                                              : (size_t)KEPT_OF_A_FILE);
        store_snapshot_overflow(f->view.snapshots[i], f->overflow);
    }
    if (f->view.count)
        return 0;
    return f->view.unreadable_count
               ? error_set(e, -EBADMSG, "%s", source_problem(f->view.unreadable[0]))
               : error_set(e, -ENOENT, "no recording (HOST.sonde) in %s", paths[0]);
}

int export_source_of_files(const char *const *paths, size_t count,
                           const struct export_selection *selection, struct export_source **out,
                           struct error *e)
{
    struct files *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return no_memory(e);
    f->base.kind = &kind;
    f->selection = selection;
    int rc = export_judge_make(&f->judge, selection, e);
    if (!rc)
        rc = open_view(f, paths, count, e);
    if (!rc) {
        find_range(f);
        rc = widen_range(f, e);
    }
    if (!rc)
        rc = select_all(f, e);
    if (!rc && selection->events)
        rc = files_events(&f->base, note_keys, f, e);
    if (rc) {
        files_close(&f->base);
        return rc;
    }
    keys_sort(&f->keys);
    f->base.plan = (struct export_plan){.series = f->series,
                                        .series_count = f->count,
                                        .keys = f->keys.all,
                                        .key_count = f->keys.count,
                                        .from_ns = selection->from_ns,
                                        .to_ns = selection->to_ns,
                                        .events = selection->events};
    *out = &f->base;
    return 0;
}
