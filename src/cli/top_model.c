#include "cli/top_model.h"

#include "base/array.h"
#include "base/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRESH_S = 15, FRESH_BUCKETS = 3, PROCESS_BUCKET_S = 4 }; // processes are sampled every 2 s

static const struct top_column node_columns[] = {
    {"CPU %", "cpu_percent", "avg", "avg", false, "percent", 0},
    {"MEM %", "memory_used_percent", "avg", "avg", false, "percent", 0},
    {"NET IN", "network_receive_bytes_total", "sum", NULL, true, "bytes", 0},
    {"OUT", "network_transmit_bytes_total", "sum", NULL, true, "bytes", 0},
    {"GPU %", "gpu_utilization_percent", "avg", "avg", false, "percent", 0},
    {"GPUMEM", "gpu_memory_used_bytes", "sum", "avg", false, "bytes", 0},
    {"POWER", "gpu_power_watts", "sum", "avg", false, "watts", 0},
    {"READ", "disk_read_bytes_total", "sum", NULL, true, "bytes", 0},
    {"WRITE", "disk_written_bytes_total", "sum", NULL, true, "bytes", 0},
};
static const struct top_column gpu_columns[] = {
    {"GPU %", "gpu_utilization_percent", "avg", "avg", false, "percent", 0},
    {"MEM %", "gpu_memory_used_percent", "avg", "avg", false, "percent", 0},
    {"MEM", "gpu_memory_used_bytes", "avg", "avg", false, "bytes", 0},
    {"POWER", "gpu_power_watts", "avg", "avg", false, "watts", 0},
    {"TEMP", "gpu_temperature_celsius", "avg", "avg", false, "celsius", 0},
};
static const struct top_column process_columns[] = {
    // percent of one processor; may exceed 100
    {"CPU %", "process_cpu_seconds_total", "sum", NULL, true, "number", 100},
    {"MEM", "process_resident_bytes", "sum", "avg", false, "bytes", 0},
    {"READ", "process_read_bytes_total", "sum", NULL, true, "bytes", 0},
    {"WRITE", "process_write_bytes_total", "sum", NULL, true, "bytes", 0},
    {"GPUMEM", "process_gpu_memory_bytes", "sum", "avg", false, "bytes", 0},
};
static const struct top_column metric_columns[] = {
    {"MEAN", NULL, "avg", "avg", false, NULL, 0},
    {"LOW", NULL, "min", "min", false, NULL, 0},
    {"HIGH", NULL, "max", "max", false, NULL, 0},
};
static const struct top_column series_columns[] = {
    {"LAST", NULL, "none", "avg", false, NULL, 0},
};

#define COLUMNS(a) (a), sizeof(a) / sizeof(a)[0]

static void add_table(struct top_model *m, const char *title, const char *empty,
                      const struct top_column *columns, size_t count,
                      const char *const keys[TOP_KEYS_MAX])
{
    struct top_table *t = &m->tables[m->table_count++];
    int64_t least = columns == process_columns ? (int64_t)PROCESS_BUCKET_S * NS_PER_S : 0;
    *t = (struct top_table){.title = title,
                            .empty = empty,
                            .columns = columns,
                            .column_count = count,
                            .rows_end = columns == process_columns,
                            .all_tags = columns == series_columns,
                            .by_metric = columns == metric_columns,
                            .own_columns = !columns,
                            .bucket_ns = m->bucket_ns > least ? m->bucket_ns : least,
                            .newest = INT64_MIN};
    if (!columns)
        t->columns = t->own;
    for (size_t i = 0; keys && i < TOP_KEYS_MAX; i++)
        t->keys[i] = keys[i];
}

static void free_table(struct top_table *t)
{
    free(t->rows);
    map_free(&t->by_key);
    arena_free(&t->arena);
}

static void make_tables(struct top_model *m)
{
    static const char *const
        host[TOP_KEYS_MAX] = {"host"},
        *const host_gpu[TOP_KEYS_MAX] = {"host", "gpu"}, *const gpu[TOP_KEYS_MAX] = {"gpu"},
        *const rank_host[TOP_KEYS_MAX] = {"rank", "host"}, *const rank[TOP_KEYS_MAX] = {"rank"},
        *const host_process[TOP_KEYS_MAX] = {"host", "pid", "command"},
        *const process[TOP_KEYS_MAX] = {"pid", "command"};
    static const char no_processes[] = "no processes are recorded (level 2 and above records them)",
                      no_gpus[] = "no GPUs are recorded (level 3 and above records them)",
                      no_metrics[] = "the job's programs have emitted no metrics so far",
                      no_ranks[] = "no program emits a metric with the tag rank",
                      no_member[] = "nothing of this has a value at this time";
    for (size_t i = 0; i < m->table_count; i++)
        free_table(&m->tables[i]);
    m->table_count = 0;
    switch (m->kind) {
    case TOP_NODES:
        add_table(m, "NODE", "no node has recorded anything yet", COLUMNS(node_columns), host);
        break;
    case TOP_GPUS:
        add_table(m, "GPU", no_gpus, COLUMNS(gpu_columns), host_gpu);
        break;
    case TOP_PROCESSES:
        add_table(m, "PROCESS", no_processes, COLUMNS(process_columns), host_process);
        break;
    case TOP_METRICS:
        add_table(m, "METRIC", no_metrics, COLUMNS(metric_columns), NULL);
        break;
    case TOP_SERIES:
        add_table(m, "SERIES", "no series of this metric has a value at this time",
                  COLUMNS(series_columns), NULL);
        break;
    case TOP_RANKS:
        add_table(m, "RANK", no_ranks, NULL, 0, rank_host);
        break;
    case TOP_MEMBER:
        add_table(m, "METRIC", no_member, COLUMNS(metric_columns), NULL);
        break;
    case TOP_NODE:
        add_table(m, "GPU", no_gpus, COLUMNS(gpu_columns), gpu);
        add_table(m, "RANK", no_ranks, NULL, 0, rank);
        m->tables[1].optional = true;
        add_table(m, "PROCESS", no_processes, COLUMNS(process_columns), process);
        add_table(m, "METRIC", no_metrics, COLUMNS(metric_columns), NULL);
        break;
    default:
        break;
    }
}

void top_model_create(struct top_model *m)
{
    *m = (struct top_model){.bucket_ns = NS_PER_S, .sort = -1};
    make_tables(m);
}

void top_model_free(struct top_model *m)
{
    for (size_t i = 0; i < m->table_count; i++)
        free_table(&m->tables[i]);
    arena_free(&m->events_arena);
    arena_free(&m->findings_arena);
    m->table_count = 0;
}

void top_model_show(struct top_model *m, enum top_kind kind, const char *of)
{
    if (kind < TOP_VIEWS)
        m->node[0] = m->member_key[0] = m->member[0] = m->metric[0] = 0;
    if (kind == TOP_NODE)
        snprintf(m->node, sizeof m->node, "%s", of);
    if (kind == TOP_MEMBER) {
        const char *value = strchr(of, ' ');
        size_t size = value ? (size_t)(value - of) : strlen(of);
        snprintf(m->member_key, sizeof m->member_key, "%.*s", (int)size, of);
        snprintf(m->member, sizeof m->member, "%s", value ? value + 1 : "");
    }
    if (kind == TOP_SERIES)
        snprintf(m->metric, sizeof m->metric, "%s", of);
    m->kind = kind;
    m->selected = m->scroll = 0;
    m->sort = -1;
    m->descending = false;
    m->filter[0] = 0;
    m->event_count = 0;
    make_tables(m);
}

void top_model_forget(struct top_model *m)
{
    make_tables(m);
    m->event_count = 0;
}

// ---------------------------------------------------------------- values

struct top_row *top_table_row(struct top_table *t, struct str key, const char *name)
{
    bool added;
    const uint64_t *known = map_get(&t->by_key, key);
    if (known)
        return &t->rows[*known];
    if (t->count == TOP_ROWS_MAX) {
        t->left_out++;
        return NULL;
    }
    if (!array_room(&t->rows, &t->capacity, t->count + 1, sizeof *t->rows))
        return NULL;
    struct str own = arena_str(&t->arena, key);
    size_t values = (t->own_columns ? TOP_COLUMNS_MAX : t->column_count) * TOP_BUCKETS;
    struct top_row row = {.name = arena_strdup(&t->arena, str_of(name)),
                          .values = arena_array(&t->arena, values, sizeof(double))};
    uint64_t *place = own.data && row.name && row.values ? map_add(&t->by_key, own, &added) : NULL;
    if (!place)
        return NULL;
    for (size_t i = 0; i < values; i++)
        row.values[i] = NAN;
    *place = t->count;
    t->rows[t->count] = row;
    return &t->rows[t->count++];
}

int top_table_column(struct top_table *t, const char *metric, const char *unit, bool counter)
{
    for (size_t i = 0; i < t->column_count; i++)
        if (strcmp(t->own[i].metric, metric) == 0)
            return (int)i;
    if (t->column_count == TOP_COLUMNS_MAX)
        return -1;
    const char *name = arena_strdup(&t->arena, str_of(metric)),
               *own_unit = arena_strdup(&t->arena, str_of(unit));
    if (!name || !own_unit)
        return -1;
    t->own[t->column_count] = (struct top_column){.title = name,
                                                  .metric = name,
                                                  .aggregator = counter ? "sum" : "avg",
                                                  .function = "avg",
                                                  .counter = counter,
                                                  .unit = own_unit};
    return (int)t->column_count++;
}

static double *at(const struct top_row *row, size_t column, int64_t bucket)
{
    return &row->values[column * TOP_BUCKETS + (size_t)(bucket % TOP_BUCKETS)];
}

void top_table_advance(struct top_table *t, int64_t bucket)
{
    if (bucket <= t->newest)
        return;
    int64_t from = t->newest == INT64_MIN || bucket - t->newest > TOP_BUCKETS ? bucket - TOP_BUCKETS
                                                                              : t->newest;
    for (size_t i = 0; i < t->count; i++)
        for (size_t c = 0; c < t->column_count; c++)
            for (int64_t b = from + 1; b <= bucket; b++)
                *at(&t->rows[i], c, b) = NAN;
    t->newest = bucket;
}

void top_table_put(struct top_table *t, struct top_row *row, size_t column, int64_t bucket,
                   double value)
{
    double factor = t->columns[column].factor;
    if (bucket <= t->newest && bucket > t->newest - TOP_BUCKETS)
        *at(row, column, bucket) = factor != 0 ? value * factor : value;
}

double top_table_last(const struct top_table *t, const struct top_row *row, size_t column)
{
    int64_t fresh = (int64_t)FRESH_S * NS_PER_S / t->bucket_ns;
    if (fresh < FRESH_BUCKETS)
        fresh = FRESH_BUCKETS;
    for (int64_t b = t->newest; t->newest != INT64_MIN && b > t->newest - fresh && b >= 0; b--)
        if (!isnan(*at(row, column, b)))
            return *at(row, column, b);
    return NAN;
}

void top_table_history(const struct top_table *t, const struct top_row *row, size_t column,
                       int count, double *out)
{
    for (int i = 0; i < count; i++) {
        int64_t b = t->newest - count + 1 + i;
        bool kept = t->newest != INT64_MIN && b >= 0 && b > t->newest - TOP_BUCKETS;
        out[i] = kept ? *at(row, column, b) : NAN;
    }
}

static bool row_has(const struct top_row *row, size_t column)
{
    for (size_t i = 0; i < TOP_BUCKETS; i++)
        if (!isnan(row->values[column * TOP_BUCKETS + i]))
            return true;
    return false;
}

bool top_table_has(const struct top_table *t, size_t column)
{
    for (size_t i = 0; i < t->count; i++)
        if (row_has(&t->rows[i], column))
            return true;
    return false;
}

// ---------------------------------------------------------------- order

static bool contains(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return !*part;
}

static bool shown(const struct top_model *m, const struct top_table *t, const struct top_row *row)
{
    if (!contains(row->name, m->filter))
        return false;
    for (size_t c = 0; t->rows_end && c < t->column_count; c++)
        if (row_has(row, c))
            return true;
    return !t->rows_end;
}

struct ordered {
    size_t index;
    const char *name;
    double value;
};

static int by_name(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    return str_compare_natural(str_of(x->name), str_of(y->name));
}

// Compares in ascending order; in both directions, rows without a value come last.
static int by_value(const struct ordered *x, const struct ordered *y, int direction)
{
    if (isnan(x->value) || isnan(y->value))
        return isnan(x->value) - isnan(y->value);
    return x->value < y->value ? -direction : x->value > y->value ? direction : 0;
}

static int rising(const void *a, const void *b)
{
    int order = by_value(a, b, 1);
    return order ? order : by_name(a, b);
}

static int falling(const void *a, const void *b)
{
    int order = by_value(a, b, -1);
    return order ? order : by_name(a, b);
}

static int by_name_falling(const void *a, const void *b)
{
    return by_name(b, a);
}

size_t top_table_order(const struct top_model *m, const struct top_table *t, size_t *out)
{
    struct ordered *all = malloc((t->count + 1) * sizeof *all);
    bool by_column = m->sort >= 0 && (size_t)m->sort < t->column_count;
    size_t n = 0;
    for (size_t i = 0; all && i < t->count; i++)
        if (shown(m, t, &t->rows[i]))
            all[n++] =
                (struct ordered){i, t->rows[i].name,
                                 by_column ? top_table_last(t, &t->rows[i], (size_t)m->sort) : 0};
    if (n)
        qsort(all, n, sizeof *all,
              by_column ? (m->descending ? falling : rising)
                        : (m->descending ? by_name_falling : by_name));
    for (size_t i = 0; i < n; i++)
        out[i] = all[i].index;
    free(all);
    return n;
}

size_t top_table_shown(const struct top_model *m, const struct top_table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        n += shown(m, t, &t->rows[i]);
    return n;
}

bool top_table_visible(const struct top_table *t)
{
    return !t->optional || t->count;
}

// ---------------------------------------------------------------- events and findings

static bool event_shown(const struct top_model *m, const struct top_event *e)
{
    return contains(e->text, m->filter) || contains(e->node, m->filter) ||
           contains(e->tags, m->filter);
}

static bool finding_shown(const struct top_model *m, const struct top_finding *f)
{
    return contains(f->member, m->filter) || contains(f->what, m->filter);
}

// A global variable, because qsort passes no argument from its caller. Only one thread draws.
static const struct top_model *sorted;

static int signum(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

// Compares two events: spans come first, by process and start, so that a span is below its parent;
// then annotations, the newest first.
static int by_process(const struct top_event *x, const struct top_event *y)
{
    if (x->annotation)
        return signum(y->start_ns, x->start_ns);
    int order = str_compare_natural(str_of(x->node), str_of(y->node));
    if (!order)
        order = str_compare_natural(str_of(x->process), str_of(y->process));
    return order ? order : signum(x->start_ns, y->start_ns);
}

static int compare_events(const void *a, const void *b)
{
    const struct top_event *x = &sorted->events[*(const size_t *)a],
                           *y = &sorted->events[*(const size_t *)b];
    if (x->annotation != y->annotation)
        return x->annotation - y->annotation;
    int order = sorted->sort == 0   ? signum(y->start_ns, x->start_ns)
                : sorted->sort == 1 ? str_compare_natural(str_of(x->text), str_of(y->text))
                                    : by_process(x, y);
    return sorted->descending ? -order : order;
}

size_t top_model_events(const struct top_model *m, size_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < m->event_count; i++)
        if (event_shown(m, &m->events[i]))
            out[n++] = i;
    sorted = m;
    if (n)
        qsort(out, n, sizeof *out, compare_events);
    return n;
}

static int compare_findings(const void *a, const void *b)
{
    const struct top_finding *x = &sorted->findings[*(const size_t *)a],
                             *y = &sorted->findings[*(const size_t *)b];
    int worse =
        x->now != y->now ? (x->now ? -1 : 1) : (x->factor < y->factor) - (x->factor > y->factor);
    int order = sorted->sort == 0   ? signum(y->since_ns, x->since_ns)
                : sorted->sort == 1 ? str_compare_natural(str_of(x->member), str_of(y->member))
                                    : worse;
    return sorted->descending ? -order : order;
}

size_t top_model_findings(const struct top_model *m, size_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < m->finding_count; i++)
        if (finding_shown(m, &m->findings[i]))
            out[n++] = i;
    sorted = m;
    if (n)
        qsort(out, n, sizeof *out, compare_findings);
    return n;
}

void top_model_nest(struct top_model *m)
{
    for (size_t i = 0; i < m->event_count; i++) {
        struct top_event *e = &m->events[i];
        int64_t parent = e->parent;
        e->depth = 0;
        // If a parent has ended, it is not in the list. The limit ends the search for damaged ids
        // that form a circle.
        for (size_t k = 0; parent && k < m->event_count && e->depth < (int)m->event_count; k++)
            if (!m->events[k].annotation && m->events[k].id == parent) {
                parent = m->events[k].parent;
                e->depth++;
                k = SIZE_MAX; // restart at the first event
            }
    }
}

static bool is_value(const char *tag, const char *value)
{
    return *tag && value && strcmp(tag, value) == 0;
}

bool top_model_marked(const struct top_model *m, const struct top_table *t,
                      const struct top_row *row)
{
    for (size_t i = 0; i < m->finding_count; i++) {
        const struct top_finding *f = &m->findings[i];
        const char *host = m->node[0] ? m->node : NULL, *gpu = NULL, *rank = NULL;
        bool member = false;
        if (!f->now)
            continue;
        if (t->by_metric && !m->node[0] && is_value(f->what, row->name))
            return true;
        for (size_t k = 0; k < TOP_KEYS_MAX && t->keys[k]; k++) {
            const char *value = row->key_values[k];
            host = strcmp(t->keys[k], "host") == 0 ? value : host;
            gpu = strcmp(t->keys[k], "gpu") == 0 ? value : gpu;
            rank = strcmp(t->keys[k], "rank") == 0 ? value : rank;
            member |= strcmp(t->keys[k], "pid") == 0;
        }
        if (!t->keys[0] || member || (*f->host && !is_value(f->host, host)))
            continue;
        if (gpu ? is_value(f->gpu, gpu) : rank ? is_value(f->rank, rank) : *f->host)
            return true;
    }
    return false;
}

size_t top_model_rows(const struct top_model *m)
{
    size_t n = 0;
    if (m->kind == TOP_EVENTS) {
        for (size_t i = 0; i < m->event_count; i++)
            n += event_shown(m, &m->events[i]);
        return n;
    }
    if (m->kind == TOP_FINDINGS) {
        for (size_t i = 0; i < m->finding_count; i++)
            n += finding_shown(m, &m->findings[i]);
        return n;
    }
    for (size_t k = 0; k < m->table_count; k++)
        n += top_table_shown(m, &m->tables[k]);
    return n;
}

const struct top_row *top_model_selected(const struct top_model *m, const struct top_table **table)
{
    size_t before = 0;
    for (size_t k = 0; k < m->table_count; k++) {
        const struct top_table *t = &m->tables[k];
        size_t *order = malloc((t->count + 1) * sizeof *order);
        size_t n = order ? top_table_order(m, t, order) : 0;
        const struct top_row *row =
            n && m->selected < before + n ? &t->rows[order[m->selected - before]] : NULL;
        free(order);
        if (row) {
            *table = t;
            return row;
        }
        before += n;
    }
    return NULL;
}
