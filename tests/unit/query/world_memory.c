// Implements read.h over arrays. Summaries are computed like the store's: by the definitions in
// read.h.
#include "unit/query/world.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SERIES_MAX = 4096, METRICS_MAX = 8, VALUES_MAX = 8192 };

struct points {
    int64_t *t;
    double *v;
    size_t count, capacity;
};

struct series {
    uint32_t metric;
    struct store_label labels[STORE_LABELS_MAX];
    uint32_t label_count;
    struct points points;
};

struct store_snapshot {
    struct world *world;
    struct store_metric metrics[METRICS_MAX];
    uint32_t metric_count;
    struct series *series;
    uint32_t series_count;
    uint64_t first_block; // number of its first block
    uint32_t of_metric[METRICS_MAX][SERIES_MAX];
    size_t of_metric_count[METRICS_MAX];
    struct str keys[256];
    struct str values[VALUES_MAX];
};

struct world {
    struct store_snapshot *stores[WORLD_STORES_MAX];
    struct store_snapshot *open[WORLD_STORES_MAX];
    size_t run_length;
    uint64_t decoded;
    char *texts[SERIES_MAX * 4];
    size_t text_count;
};

static struct str keep(struct world *w, struct str s)
{
    char *copy = calloc(1, s.size + 1);
    if (s.size)
        memcpy(copy, s.data, s.size);
    w->texts[w->text_count++] = copy;
    return (struct str){copy, s.size};
}

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->run_length = 1024;
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < WORLD_STORES_MAX; i++) {
        struct store_snapshot *s = w->stores[i];
        if (!s)
            continue;
        for (uint32_t k = 0; k < s->series_count; k++) {
            free(s->series[k].points.t);
            free(s->series[k].points.v);
        }
        free(s->series);
        free(s);
    }
    for (size_t i = 0; i < w->text_count; i++)
        free(w->texts[i]);
    free(w);
}

static int compare_labels(const void *a, const void *b)
{
    return str_compare(((const struct store_label *)a)->key, ((const struct store_label *)b)->key);
}

uint32_t world_series(struct world *w, unsigned store, const char *metric, const char *tags)
{
    struct store_snapshot *s = w->stores[store];
    if (!s) {
        s = w->stores[store] = calloc(1, sizeof *s);
        static uint64_t stores;
        s->world = w;
        s->first_block = ++stores << 32;
        s->series = calloc(SERIES_MAX, sizeof *s->series);
    }
    uint32_t m = 0;
    while (m < s->metric_count && !str_eq(s->metrics[m].name, str_of(metric)))
        m++;
    if (m == s->metric_count)
        s->metrics[s->metric_count++].name = keep(w, str_of(metric));
    struct series *one = &s->series[s->series_count];
    one->metric = m;
    struct str rest = keep(w, str_of(tags));
    while (rest.size) {
        struct str value = str_cut(&rest, ','), key = str_cut(&value, '=');
        one->labels[one->label_count++] = (struct store_label){key, value};
    }
    qsort(one->labels, one->label_count, sizeof *one->labels, compare_labels);
    s->of_metric[m][s->of_metric_count[m]++] = s->series_count;
    return s->series_count++;
}

void world_add(struct world *w, unsigned store, uint32_t series, int64_t t_ns, double value)
{
    struct points *p = &w->stores[store]->series[series].points;
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 64;
        p->t = realloc(p->t, p->capacity * sizeof *p->t);
        p->v = realloc(p->v, p->capacity * sizeof *p->v);
    }
    size_t i = p->count;
    while (i > 0 && p->t[i - 1] > t_ns)
        i--;
    if (i > 0 && p->t[i - 1] == t_ns) {
        p->v[i - 1] = value;
        return;
    }
    memmove(p->t + i + 1, p->t + i, (p->count - i) * sizeof *p->t);
    memmove(p->v + i + 1, p->v + i, (p->count - i) * sizeof *p->v);
    p->t[i] = t_ns;
    p->v[i] = value;
    p->count++;
}

// Worlds in memory have no second reader, so helpers (ahead.h) read nothing.
struct store_snapshot *store_snapshot_beside(const struct store_snapshot *s)
{
    (void)s;
    return NULL;
}

static struct store_request requested;

bool store_request_series(struct store_request *q, struct store_snapshot *s, uint32_t series)
{
    (void)s, (void)series;
    requested = *q;
    return false;
}

struct store_request world_request(void)
{
    return requested;
}

void store_snapshot_close(struct store_snapshot *s)
{
    (void)s;
}

void store_snapshot_keep_at_most(struct store_snapshot *s, size_t bytes)
{
    (void)s, (void)bytes;
}

struct store_snapshot *const *world_stores(struct world *w, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < WORLD_STORES_MAX; i++)
        if (w->stores[i])
            w->open[(*count)++] = w->stores[i];
    return w->open;
}

void world_run_length(struct world *w, size_t points)
{
    w->run_length = points;
}

bool world_is_sealed(void)
{
    return true;
}

bool world_heeds_run_length(void)
{
    return true;
}

uint64_t world_decoded(const struct world *w)
{
    return w->decoded;
}

// ---- read.h ----

size_t store_metric_count(const struct store_snapshot *s)
{
    return s->metric_count;
}

const struct store_metric *store_metric_get(const struct store_snapshot *s, uint32_t metric)
{
    return metric < s->metric_count ? &s->metrics[metric] : NULL;
}

bool store_series_get(const struct store_snapshot *s, uint32_t series,
                      struct store_series_info *out)
{
    if (series >= s->series_count)
        return false;
    const struct series *one = &s->series[series];
    *out = (struct store_series_info){one->metric, one->label_count, one->labels};
    return true;
}

bool store_metric_find(const struct store_snapshot *s, struct str name, uint32_t *metric)
{
    for (uint32_t m = 0; m < s->metric_count; m++)
        if (str_eq(s->metrics[m].name, name)) {
            *metric = m;
            return true;
        }
    return false;
}

const uint32_t *store_metric_series(const struct store_snapshot *s, uint32_t metric, size_t *count)
{
    *count = s->of_metric_count[metric];
    return s->of_metric[metric];
}

const uint32_t *store_label_series(const struct store_snapshot *cs, struct str key,
                                   struct str value, size_t *count)
{
    struct store_snapshot *s = (struct store_snapshot *)(uintptr_t)cs;
    uint32_t *ids = calloc(s->series_count, sizeof *ids);
    s->world->texts[s->world->text_count++] = (char *)ids;
    *count = 0;
    for (uint32_t i = 0; i < s->series_count; i++)
        for (uint32_t k = 0; k < s->series[i].label_count; k++)
            if (str_eq(s->series[i].labels[k].key, key) &&
                str_eq(s->series[i].labels[k].value, value))
                ids[(*count)++] = i;
    return ids;
}

static int compare_strings(const void *a, const void *b)
{
    return str_compare(*(const struct str *)a, *(const struct str *)b);
}

static size_t unique(struct str *all, size_t count)
{
    size_t n = 0;
    qsort(all, count, sizeof *all, compare_strings);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !str_eq(all[i], all[i - 1]))
            all[n++] = all[i];
    return n;
}

const struct str *store_label_keys(const struct store_snapshot *cs, size_t *count)
{
    struct store_snapshot *s = (struct store_snapshot *)(uintptr_t)cs;
    size_t n = 0;
    for (uint32_t i = 0; i < s->series_count; i++)
        for (uint32_t k = 0; k < s->series[i].label_count; k++) {
            if (n == 256)
                n = unique(s->keys, n);
            s->keys[n++] = s->series[i].labels[k].key;
        }
    *count = unique(s->keys, n);
    return s->keys;
}

const struct str *store_label_values(const struct store_snapshot *cs, struct str key, size_t *count)
{
    struct store_snapshot *s = (struct store_snapshot *)(uintptr_t)cs;
    size_t n = 0;
    for (uint32_t i = 0; i < s->series_count; i++)
        for (uint32_t k = 0; k < s->series[i].label_count; k++)
            if (str_eq(s->series[i].labels[k].key, key))
                s->values[n++] = s->series[i].labels[k].value;
    *count = unique(s->values, n);
    return s->values;
}

struct store_cursor {
    struct store_snapshot *s;
    const struct points *points;
    size_t at, end;        // within the range
    size_t run, run_count; // the current run
    uint64_t block;        // its number, if the run is a complete block
    bool blocks;           // blocks that the range cuts are returned complete
    int64_t *t;
    double *v;
};

struct store_cursor *store_cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                       int64_t to_ns)
{
    const struct points *p = &s->series[series].points;
    struct store_cursor *c = calloc(1, sizeof *c);
    c->s = s;
    c->points = p;
    c->end = p->count;
    while (c->at < p->count && p->t[c->at] < from_ns)
        c->at++;
    while (c->end > c->at && p->t[c->end - 1] > to_ns)
        c->end--;
    return c;
}

struct store_cursor *store_cursor_open_blocks(struct store_snapshot *s, uint32_t series,
                                              int64_t from_ns, int64_t to_ns)
{
    struct store_cursor *c = store_cursor_open(s, series, from_ns, to_ns);
    c->blocks = true;
    return c;
}

static void drop_copy(struct store_cursor *c)
{
    free(c->t);
    free(c->v);
    c->t = NULL;
    c->v = NULL;
}

void store_cursor_close(struct store_cursor *c)
{
    drop_copy(c);
    free(c);
}

int store_cursor_next(struct store_cursor *c, struct store_run *run)
{
    drop_copy(c);
    if (c->at >= c->end)
        return 0;
    size_t length = c->s->world->run_length, whole_from = c->at - c->at % length,
           whole_to = whole_from + length;
    if (whole_to > c->points->count)
        whole_to = c->points->count;
    size_t to = whole_to < c->end ? whole_to : c->end;
    c->run = c->blocks ? whole_from : c->at;
    c->at = to;
    to = c->blocks ? whole_to : to;
    c->run_count = to - c->run;
    c->block = 0;
    const double *v = c->points->v + c->run;
    *run = (struct store_run){
        .count = c->run_count, .first_ns = c->points->t[c->run], .last_ns = c->points->t[to - 1]};
    if (c->run != whole_from || to != whole_to)
        return 1;
    c->block = c->s->first_block + whole_from / length + 1;
    run->has_summary = true;
    run->summary.first = v[0];
    run->summary.last = v[c->run_count - 1];
    run->summary.min = INFINITY;
    run->summary.max = -INFINITY;
    for (size_t i = 0; i < c->run_count; i++) {
        if (isnan(v[i])) {
            run->nans++;
            continue;
        }
        run->summary.min = v[i] < run->summary.min ? v[i] : run->summary.min;
        run->summary.max = v[i] > run->summary.max ? v[i] : run->summary.max;
        run->summary.sum += v[i];
        run->summary.sum_squares += v[i] * v[i];
    }
    return 1;
}

int store_cursor_points(struct store_cursor *c, const int64_t **t_ns, const double **values,
                        size_t *count)
{
    // Copies of the exact size, so that the sanitizers detect reads behind them.
    drop_copy(c);
    c->t = malloc(c->run_count * sizeof *c->t);
    c->v = malloc(c->run_count * sizeof *c->v);
    memcpy(c->t, c->points->t + c->run, c->run_count * sizeof *c->t);
    memcpy(c->v, c->points->v + c->run, c->run_count * sizeof *c->v);
    *t_ns = c->t;
    *values = c->v;
    *count = c->run_count;
    c->s->world->decoded += c->run_count;
    return 0;
}

// A block is as many points as a run can have.
uint64_t store_cursor_block(const struct store_cursor *c)
{
    return c->block;
}

int64_t store_newest_ns(const struct store_snapshot *s)
{
    int64_t newest = INT64_MIN;
    for (uint32_t i = 0; i < s->series_count; i++) {
        const struct points *p = &s->series[i].points;
        if (p->count && p->t[p->count - 1] > newest)
            newest = p->t[p->count - 1];
    }
    return newest;
}

bool store_point_before(struct store_snapshot *s, uint32_t series, int64_t at_ns, int64_t *t_ns,
                        double *value)
{
    const struct points *p = &s->series[series].points;
    for (size_t i = p->count; i-- > 0;)
        if (p->t[i] <= at_ns) {
            *t_ns = p->t[i];
            *value = p->v[i];
            return true;
        }
    return false;
}
