// gather_measures.c - the measures of a report: statistics of all points, and buckets.
#include "base/array.h"
#include "base/parallel.h"
#include "report/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    QUERIES_MAX = 6,
    EXPRESSION_MAX = 320,
    REQUEST_MEASURES_MAX = 40,
    // limit of values in a request, such that a server with 32 MiB per query can answer it
    REQUEST_CELLS = 500000,
};

// The queries of a measure, in the order of a request. The first one that is sent defines the
// lines.
enum { OF_MEAN, OF_PEAK, OF_COUNT, OF_BUCKETS, OF_LEAST, OF_GREATEST };

// Sets of them.
enum {
    MEAN = 1 << OF_MEAN,
    PEAK = 1 << OF_PEAK,
    BUCKETS = 1 << OF_BUCKETS,
    FIGURES = MEAN | PEAK | 1 << OF_COUNT | BUCKETS,
    DRAWN = FIGURES | 1 << OF_LEAST | 1 << OF_GREATEST, // of a gauge
};

static const struct {
    const char *metric, *tag;
    bool counter;
} table[] = {
#define GAUGE false
#define COUNTER true
#define ROW(id, metric, tag, kind) [REPORT_##id] = {metric, tag, kind},
    REPORT_MEASURES(ROW)
#undef ROW
#undef GAUGE
#undef COUNTER
};

static bool is_there(const struct gather *g, enum report_measure_id id)
{
    return gather_metric(g, table[id].metric) != NULL;
}

// What the lines of report_brief depend on: GPUs, energy, and the likely findings without their
// evidence and advice. A counter's mean is its growth, too. 0: nothing.
static unsigned brief_queries(const struct gather *g, enum report_measure_id id)
{
    switch (id) {
    case REPORT_CPU_BUSIEST:
    case REPORT_MEMORY_TOTAL:
    case REPORT_MEMORY_LIMIT:
        // set beside the job's processor time, or its memory
        return is_there(g, id == REPORT_CPU_BUSIEST ? REPORT_JOB_CPU : REPORT_JOB_MEMORY) ? MEAN
                                                                                          : 0;
    case REPORT_JOB_THREADS:
        return 0;
    case REPORT_CPU:
    case REPORT_DISK_READ:
    case REPORT_DISK_WRITTEN:
    case REPORT_NETWORK_IN:
    case REPORT_NETWORK_OUT:
        return BUCKETS;
    case REPORT_JOB_MEMORY:
    case REPORT_MEMORY:
        return PEAK | BUCKETS;
    case REPORT_JOB_CPU:
        return MEAN | PEAK | BUCKETS;
    case REPORT_CGROUP_THROTTLED:
    case REPORT_PRESSURE_IO:
    case REPORT_GPU:
    case REPORT_GPU_THERMAL:
    case REPORT_GPU_OVERHEATED:
    case REPORT_GPU_BRAKE:
    case REPORT_GPU_HARDWARE:
        return MEAN | BUCKETS;
    default:
        return MEAN;
    }
}

static bool is_drawn(enum report_measure_id id)
{
    return id == REPORT_CPU || id == REPORT_MEMORY || id == REPORT_JOB_MEMORY || id == REPORT_GPU ||
           id == REPORT_GPU_MEMORY || id == REPORT_GPU_POWER;
}

// A line and its source data, which are valid as long as the answer.
struct taken {
    struct report_line line;
    const struct sonde_series *series;
    double *buckets;
};

// The lines of one measure while its answers arrive.
struct taking {
    struct taken *all;
    size_t count, capacity, hint; // hint: likely index of the next series
    double *least, *greatest;
};

// A measure to request.
struct measure_request {
    struct report_measure *measure;
    const char *tag; // NULL: all tags except the host
    bool counter;
    unsigned queries; // 1 << OF_…
};

// Returns the value of `tag`; if it is NULL, all tags except the host, "rank=3,phase=train".
static struct str part_of(struct gather *g, const struct sonde_series *s, const char *tag)
{
    if (tag)
        return arena_str(g->arena, gather_tag(s, tag));
    struct buf b = {0};
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, "host") != 0)
            buf_printf(&b, "%s%s=%s", b.size ? "," : "", s->tags[i].key, s->tags[i].value);
    struct str copy = arena_str(g->arena, buf_str(&b));
    buf_free(&b);
    return copy;
}

static bool same_tags(const struct sonde_series *a, const struct sonde_series *b)
{
    if (a->tag_count != b->tag_count)
        return false;
    for (size_t i = 0; i < a->tag_count; i++)
        if (strcmp(a->tags[i].key, b->tags[i].key) != 0 ||
            strcmp(a->tags[i].value, b->tags[i].value) != 0)
            return false;
    return true;
}

static double *new_buckets(struct gather *g)
{
    double *buckets = arena_array(g->arena, g->report->bucket_count, sizeof *buckets);
    for (size_t i = 0; buckets && i < g->report->bucket_count; i++)
        buckets[i] = (double)NAN;
    return buckets;
}

static void fill(const struct report *r, const struct sonde_series *s, double *buckets)
{
    for (size_t i = 0; i < s->count; i++) {
        int64_t at = (s->time_ns[i] - r->first_ns) / r->bucket_ns;
        if (s->time_ns[i] >= r->first_ns && at < (int64_t)r->bucket_count)
            buckets[at] = s->values[i];
    }
}

// Finds the line of a series. The first query defines the lines. Every other query has the same
// series in the same order, but may lack some.
static size_t find_line(const struct taken *all, size_t count, size_t hint,
                        const struct sonde_series *s)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = (hint + i) % count;
        if (same_tags(all[at].series, s))
            return at;
    }
    return count;
}

static int by_place(const void *a, const void *b)
{
    const struct report_line *x = a, *y = b;
    int order = str_compare_natural(x->host, y->host);
    return order ? order : str_compare_natural(x->part, y->part);
}

// ---------------------------------------------------------------- one measure

static bool take_series(struct gather *g, const struct sonde_series *s,
                        const struct measure_request *request, struct taking *t)
{
    double *buckets = new_buckets(g);
    if (!buckets || !array_room(&t->all, &t->capacity, t->count + 1, sizeof *t->all))
        return false;
    t->all[t->count++] = (struct taken){.line = {.host = arena_str(g->arena, gather_tag(s, "host")),
                                                 .part = part_of(g, s, request->tag),
                                                 .mean = (double)NAN,
                                                 .peak = (double)NAN,
                                                 .total = (double)NAN,
                                                 .reached = (double)NAN,
                                                 .buckets = buckets},
                                        .series = s,
                                        .buckets = buckets};
    struct report_measure *m = request->measure;
    m->unit = m->unit.data ? m->unit : arena_str(g->arena, str_of(s->unit));
    return true;
}

// True for traffic of a node with itself, which does not use the network.
static bool is_loopback(const struct sonde_series *s, const struct measure_request *request)
{
    return request->tag && strcmp(request->tag, "interface") == 0 &&
           str_eq(gather_tag(s, "interface"), STR("lo"));
}

static bool take_answer(struct gather *g, const struct sonde_series *s, size_t query,
                        const struct measure_request *request, struct taking *t)
{
    struct report *r = g->report;
    if (is_loopback(s, request))
        return true;
    if (query == OF_LEAST || query == OF_GREATEST) {
        double **into = query == OF_LEAST ? &t->least : &t->greatest;
        if (!*into && !(*into = new_buckets(g)))
            return false;
        fill(r, s, *into);
        return true;
    }
    bool first = query == (size_t)__builtin_ctz(request->queries);
    size_t at = t->count;
    if (first && !take_series(g, s, request, t))
        return false;
    if (!first) {
        at = t->count ? find_line(t->all, t->count, t->hint, s) : t->count;
        t->hint = at + 1;
    }
    if (at == t->count)
        return true; // the series has begun after the first query
    struct report_line *line = &t->all[at].line;
    double value = s->count ? s->values[0] : (double)NAN;
    if (query == OF_MEAN && request->counter)
        line->total = value >= 0 ? value : (double)NAN;
    else if (query == OF_MEAN)
        line->mean = value;
    else if (query == OF_PEAK && request->counter)
        line->reached = value;
    else if (query == OF_PEAK)
        line->peak = value;
    else if (query == OF_COUNT)
        line->points = value;
    else
        fill(r, s, t->all[at].buckets);
    return true;
}

static bool finish(struct gather *g, const struct measure_request *request, struct taking *t)
{
    struct report *r = g->report;
    struct report_measure *m = request->measure;
    struct report_line *lines = arena_array(g->arena, t->count, sizeof *lines);
    bool is_own = m >= r->own && m < r->own + REPORT_OWN_MAX;
    for (size_t i = 0; lines && i < t->count; i++) {
        lines[i] = t->all[i].line;
        if (!request->counter)
            continue;
        // These counters begin with 0 during the job, so their value also has the time before the
        // first sample.
        if (m == &r->measures[REPORT_JOB_CPU] || is_own)
            lines[i].total = fmax(lines[i].total, lines[i].reached);
        lines[i].mean = lines[i].total / report_seconds(r);
        // Its rate would be too low.
        if (r->is_cut && r->bucket_count > 1)
            t->all[i].buckets[r->bucket_count - 1] = (double)NAN;
        for (size_t k = 0; k < r->bucket_count; k++)
            lines[i].peak = fmax(lines[i].peak, lines[i].buckets[k]);
    }
    if (lines && t->count)
        qsort(lines, t->count, sizeof *lines, by_place);
    m->lines = lines;
    m->count = lines ? t->count : 0;
    m->least = t->least;
    m->greatest = t->greatest;
    return lines != NULL;
}

// ---------------------------------------------------------------- requests

static void write_expressions(const struct gather *g, const struct measure_request *request,
                              char text[QUERIES_MAX][EXPRESSION_MAX])
{
    long long each_s = (long long)(g->report->bucket_ns / 1000000000);
    struct str metric = request->measure->metric;
    snprintf(text[OF_MEAN], EXPRESSION_MAX, "none:0all-%s:%.*s", request->counter ? "diff" : "avg",
             STR_ARG(metric));
    snprintf(text[OF_PEAK], EXPRESSION_MAX, "none:0all-max:%.*s", STR_ARG(metric));
    snprintf(text[OF_COUNT], EXPRESSION_MAX, "none:0all-count:%.*s", STR_ARG(metric));
    snprintf(text[OF_BUCKETS], EXPRESSION_MAX, "none:%llds-%s:%.*s", each_s,
             request->counter ? "last:rate{dropcounter}" : "avg", STR_ARG(metric));
    snprintf(text[OF_LEAST], EXPRESSION_MAX, "mimmin:%llds-min:%.*s", each_s, STR_ARG(metric));
    snprintf(text[OF_GREATEST], EXPRESSION_MAX, "mimmax:%llds-max:%.*s", each_s, STR_ARG(metric));
}

// The query that is the n-th of those that are sent. QUERIES_MAX: there are not so many.
static size_t nth_query(const struct measure_request *request, size_t n)
{
    size_t query = 0;
    while (query < QUERIES_MAX && (!(request->queries & 1u << query) || n-- > 0))
        query++;
    return query;
}

static size_t queries_of(const struct measure_request *request)
{
    return (size_t)__builtin_popcount(request->queries);
}

bool gather_is_too_much(int rc)
{
    return rc == -EFBIG || rc == -ETIME || rc == -ETIMEDOUT || rc == -EBUSY || rc == -EINVAL;
}

static int take_result(struct gather *g, const struct sonde_result *result,
                       const struct measure_request *all, size_t count)
{
    struct taking *taking = arena_zalloc(g->arena, count * sizeof *taking);
    bool good = taking != NULL;
    for (size_t i = 0; i < result->count && good; i++) {
        size_t query = result->queries ? result->queries[i] : 0, at = 0;
        while (at < count && query >= queries_of(&all[at]))
            query -= queries_of(&all[at++]);
        if (at < count)
            good = take_answer(g, &result->series[i], nth_query(&all[at], query), &all[at],
                               &taking[at]);
    }
    for (size_t i = 0; taking && i < count; i++) {
        good = good && finish(g, &all[i], &taking[i]);
        free(taking[i].all);
    }
    return good ? 0 : error_set(g->e, -ENOMEM, "no memory");
}

// One request. Several threads send requests; the report handles one answer after another.
struct batch {
    const struct measure_request *all;
    size_t count;
    struct gather own; // with a list of missing nodes and an error of its own
    struct error e;
    struct sonde_result *result;
    int rc;
};

static struct batch batch_of(const struct gather *g, const struct measure_request *all,
                             size_t count)
{
    struct batch b = {.all = all, .count = count, .own = *g};
    b.own.missing = (struct buf){0};
    return b;
}

static void send_batch(void *user, size_t i)
{
    struct batch *b = (struct batch *)user + i;
    char(*text)[EXPRESSION_MAX] = malloc(b->count * QUERIES_MAX * sizeof *text);
    const char **expressions = malloc(b->count * QUERIES_MAX * sizeof *expressions);
    size_t n = 0;
    b->own.e = &b->e;
    b->rc = text && expressions ? 0 : error_set(&b->e, -ENOMEM, "no memory");
    for (size_t m = 0; m < b->count && !b->rc; m++) {
        write_expressions(&b->own, &b->all[m], &text[m * QUERIES_MAX]);
        for (size_t k = 0, query; (query = nth_query(&b->all[m], k)) < QUERIES_MAX; k++)
            expressions[n++] = text[m * QUERIES_MAX + query];
    }
    if (!b->rc)
        b->rc = gather_ask(&b->own, expressions, n, NULL, b->own.report->first_ns,
                           b->own.report->to_ns, &b->result);
    free(text);
    free(expressions);
}

// Handles an answer. If a request was too large, its halves are sent again. If a single measure is
// too large, only this measure is missing.
static int take_batch(struct gather *g, struct batch *b)
{
    int rc = b->rc;
    gather_note_missing(g, b->own.missing.size ? buf_cstr(&b->own.missing) : NULL);
    buf_free(&b->own.missing);
    if (!rc) {
        rc = take_result(g, b->result, b->all, b->count);
    } else if (gather_is_too_much(rc) && b->count > 1) {
        size_t half = b->count / 2;
        struct batch parts[] = {batch_of(g, b->all, half),
                                batch_of(g, b->all + half, b->count - half)};
        rc = 0;
        for (size_t i = 0; i < 2 && !rc; i++) {
            send_batch(parts, i);
            rc = take_batch(g, &parts[i]);
        }
    } else if (gather_is_too_much(rc)) {
        char words[160];
        snprintf(words, sizeof words, "%.*s (%.80s)", STR_ARG(b->all[0].measure->metric),
                 b->e.text);
        gather_note_missing(g, words);
        rc = 0;
    } else {
        *g->e = b->e;
    }
    sonde_result_free(b->result);
    b->result = NULL;
    return rc;
}

// Sends all requests. The client holds all answers at the same time, with REQUEST_CELLS values
// each. The server gets one request after another, because it has the memory of one.
static int request_all(struct gather *g, const struct measure_request *all, size_t count)
{
    size_t nodes = g->report->node_count, cells = g->report->bucket_count * (nodes ? nodes : 1),
           most = REQUEST_CELLS / (cells ? cells : 1), n = 0;
    bool own = client_is_recording(g->client);
    most = most < 1 ? 1 : most > REQUEST_MEASURES_MAX ? REQUEST_MEASURES_MAX : most;
    if (own && most > count / PARALLEL_THREADS_MAX + 1)
        most = count / PARALLEL_THREADS_MAX + 1;
    struct batch *batches = calloc(count + 1, sizeof *batches);
    int rc = batches ? 0 : error_set(g->e, -ENOMEM, "no memory");
    for (size_t i = 0; i < count && !rc; i += most)
        batches[n++] = batch_of(g, all + i, count - i < most ? count - i : most);
    if (own && !rc)
        parallel_each(n, send_batch, batches);
    for (size_t i = 0; i < n; i++) {
        if (!own && !rc)
            send_batch(batches, i);
        if (!rc)
            rc = take_batch(g, &batches[i]);
        sonde_result_free(batches[i].result);
        buf_free(&batches[i].own.missing);
    }
    free(batches);
    return rc;
}

const json_t *gather_metric(const struct gather *g, const char *name)
{
    for (size_t i = 0; i < json_array_size(g->metrics); i++) {
        const json_t *row = json_array_get(g->metrics, i);
        const char *own = json_string_value(json_object_get(row, "name"));
        if (own && strcmp(own, name) == 0)
            return row;
    }
    return NULL;
}

static struct measure_request request_of(struct report_measure *m, struct str metric,
                                         const char *tag, bool counter, unsigned queries)
{
    *m = (struct report_measure){.metric = metric, .counter = counter};
    return (struct measure_request){m, tag, counter, queries};
}

static void add_own(struct gather *g, const json_t *row, struct measure_request *out)
{
    struct report *r = g->report;
    const char *kind = json_string_value(json_object_get(row, "kind"));
    bool counter = kind && strcmp(kind, "counter") == 0;
    if (r->own_total++ >= REPORT_OWN_MAX)
        return;
    out[r->own_count] = request_of(&r->own[r->own_count], gather_text(g, row, "name"), NULL,
                                   counter, counter ? FIGURES : DRAWN);
    r->own_count++;
}

// Selects the metrics that programs have emitted, not sonde's own sources; those of tracers last.
static size_t request_own(struct gather *g, struct measure_request *out)
{
    for (int traced = 0; traced < 2; traced++)
        for (size_t i = 0; i < json_array_size(g->metrics); i++) {
            const json_t *row = json_array_get(g->metrics, i);
            struct str name = gather_text(g, row, "name");
            if (!json_object_get(row, "source") && !gather_is_traced(name) &&
                name.size <= EXPRESSION_MAX - 64 && gather_is_of_tracer(name) == traced)
                add_own(g, row, out);
        }
    return g->report->own_count;
}

// Drops the metrics that programs have defined, but never emitted.
static void drop_unused(struct report *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->own_count; i++) {
        double points = 0;
        for (size_t k = 0; k < r->own[i].count; k++)
            points += r->own[i].lines[k].points;
        if (points > 0)
            r->own[kept++] = r->own[i];
    }
    r->own_total -= r->own_count - kept;
    r->own_count = kept;
}

int gather_measures(struct gather *g, bool brief)
{
    struct measure_request all[REPORT_MEASURES_COUNT + REPORT_OWN_MAX];
    size_t count = 0;
    for (enum report_measure_id i = 0; i < REPORT_MEASURES_COUNT; i++) {
        unsigned queries = brief ? brief_queries(g, i) : is_drawn(i) ? DRAWN : FIGURES;
        struct measure_request one = request_of(&g->report->measures[i], str_of(table[i].metric),
                                                table[i].tag, table[i].counter, queries);
        if (queries && is_there(g, i))
            all[count++] = one;
    }
    if (!brief)
        count += request_own(g, all + count);
    int rc = request_all(g, all, count);
    if (!rc)
        drop_unused(g->report);
    return rc;
}
