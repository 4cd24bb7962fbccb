// gather_spans.c - the spans of a report: a row for each name, with the idle share of the GPUs
// and the use of the processors within them.
//
// A member is a source of consecutive spans: a rank, worker or process of a node, as in
// /sonde/v1/findings.
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "client/distribution.h"
#include "report/gather.h"
#include "report/span_cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SPANS_READ_MAX = 100000, // 50 MB as JSON; further spans are ignored
    GPU_NAMES_MAX = 4,       // number of names for which GPU data are requested
    GPU_CELLS_MAX = 40000,   // limit of spans x GPUs in such a request
    GPU_SPANS_MAX = 1000,
    MEMBER_SPANS_LEAST = 3, // a member with fewer spans is not judged
    TRACED_MAX = 10000,     // a tracer records so many spans of a name in a process
};

static const double used_percent = 5; // a GPU below this use does not work for the spans
static const double gpu_share_least = 0.3;
static const double inner_share_least = 0.1;

// Identifies a span, because ids are unique only within the recording of a node. It has no padding,
// because it is a key of a map.
struct span_key {
    uint64_t node; // a hash of the node's name
    int64_t id;
};

struct span {
    struct span_key key, parent;
    int64_t start_ns, end_ns; // end_ns 0: the span is open
    size_t name, member;
};

struct member {
    struct str label, host;
    size_t name;
    uint64_t count;
    double sum_s;
};

struct name {
    struct str text;
    size_t order; // index of the first struct span of this name, sorted by name
    size_t count, unfinished;
    double sum_s;
    double calls, seconds; // that a tracer has counted; 0: no tracer records this name
    bool kernel;     // of a GPU: the report has a table of all kernels, and spans of the first
    bool collective; // its members wait for each other, so the slow one has the short spans
};

struct spans {
    struct gather *g;
    struct span *all;
    struct name *names;
    struct member *members;
    size_t count, name_count, names_capacity, member_count, members_capacity;
    struct map name_of, member_of, span_of;
};

static int no_memory(struct gather *g)
{
    return error_set(g->e, -ENOMEM, "no memory for the spans");
}

static double seconds_of(const struct span *p)
{
    return (double)(p->end_ns - p->start_ns) / 1e9;
}

// ---------------------------------------------------------------- reading

static const char *host_of(const json_t *row)
{
    const char *host = json_string_value(json_object_get(json_object_get(row, "tags"), "host"));
    return host ? host : json_string_value(json_object_get(row, "node"));
}

static struct str member_label(struct gather *g, const json_t *row)
{
    static const char *const keys[] = {"rank", "worker", "pid"};
    const json_t *tags = json_object_get(row, "tags");
    const char *host = host_of(row);
    struct buf b = {0};
    if (host && *host)
        buf_printf(&b, "host=%s", host);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = json_string_value(json_object_get(tags, keys[i]));
        if (!value)
            continue;
        buf_printf(&b, "%s%s=%s", b.size ? "," : "", keys[i], value);
        break;
    }
    struct str copy = arena_str(g->arena, b.size ? buf_str(&b) : STR("all"));
    buf_free(&b);
    return copy;
}

static bool is_kernel(const struct spans *s, struct str name)
{
    const struct report *r = s->g->report;
    for (size_t i = 0; i < r->kernel_count; i++)
        if (str_eq(r->kernels[i].name, name))
            return true;
    return false;
}

static int take_name(struct spans *s, const json_t *row, size_t *out)
{
    struct str text = gather_text(s->g, row, "name");
    text = text.data ? text : STR("?");
    bool added;
    uint64_t *at = map_add(&s->name_of, text, &added);
    if (!at || (added && !array_room_zeroed(&s->names, &s->names_capacity, s->name_count + 1,
                                            sizeof *s->names)))
        return no_memory(s->g);
    if (added) {
        *at = s->name_count;
        s->names[s->name_count++] = (struct name){.text = text, .kernel = is_kernel(s, text)};
    }
    *out = (size_t)*at;
    return 0;
}

static int take_member(struct spans *s, const json_t *row, size_t name, size_t *out)
{
    struct str label = member_label(s->g, row);
    char *key = arena_printf(s->g->arena, "%zu %.*s", name, STR_ARG(label));
    bool added;
    uint64_t *at = label.data && key ? map_add(&s->member_of, str_of(key), &added) : NULL;
    if (!at || (added && !array_room_zeroed(&s->members, &s->members_capacity, s->member_count + 1,
                                            sizeof *s->members)))
        return no_memory(s->g);
    if (added) {
        *at = s->member_count;
        s->members[s->member_count++] = (struct member){
            .label = label, .host = arena_str(s->g->arena, str_of(host_of(row))), .name = name};
    }
    *out = (size_t)*at;
    return 0;
}

static int take_span(struct spans *s, const json_t *row)
{
    struct span *p = &s->all[s->count];
    const char *host = json_string_value(json_object_get(row, "node"));
    uint64_t node = host ? hash_bytes(host, strlen(host), 0) : 0;
    *p = (struct span){.key = {node, json_integer_value(json_object_get(row, "id"))},
                       .parent = {node, json_integer_value(json_object_get(row, "parent"))},
                       .start_ns = client_time_of(row, "start_ns", 0),
                       .end_ns = client_time_of(row, "end_ns", 0)};
    int rc = take_name(s, row, &p->name);
    if (!rc && s->names[p->name].kernel)
        return 0;
    if (!rc && json_object_get(json_object_get(row, "tags"), STORE_COLLECTIVE_TAG))
        s->names[p->name].collective = true;
    if (!rc)
        rc = take_member(s, row, p->name, &p->member);
    if (rc)
        return rc;
    // Ignore the end of a span that ended only because its process ended.
    if (!p->end_ns || json_object_get(json_object_get(row, "tags"), STORE_UNFINISHED_TAG)) {
        s->names[p->name].unfinished++;
        return 0;
    }
    double seconds = seconds_of(p);
    s->names[p->name].count++;
    s->names[p->name].sum_s += seconds;
    s->members[p->member].count++;
    s->members[p->member].sum_s += seconds;
    s->count++;
    return 0;
}

// ---------------------------------------------------------------- a row for each name

static int by_name_and_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void compare_members(const struct spans *s, size_t name, struct report_span *out)
{
    double sum = 0, most = 0, longest = 0;
    size_t judged = 0;
    for (size_t i = 0; i < s->member_count; i++) {
        const struct member *m = &s->members[i];
        if (m->name != name || !m->count)
            continue;
        out->members++;
        longest = fmax(longest, m->sum_s);
        if (m->count < MEMBER_SPANS_LEAST || s->names[name].collective)
            continue;
        double mean = m->sum_s / (double)m->count;
        judged++;
        sum += mean;
        if (mean > most) {
            most = mean;
            out->slowest = m->label;
        }
    }
    out->share = longest / report_seconds(s->g->report);
    out->imbalance = judged > 1 && sum > 0 ? most / (sum / (double)judged) : (double)NAN;
}

static int make_row(struct spans *s, size_t name, struct distribution_room *room,
                    struct report_span *out)
{
    const struct name *n = &s->names[name];
    *out = (struct report_span){.name = n->text,
                                .count = n->count,
                                .unfinished = n->unfinished,
                                .total_s = n->sum_s,
                                .imbalance = (double)NAN,
                                .gpu_idle = (double)NAN,
                                .cpu_within = (double)NAN,
                                .cpu_outside = (double)NAN};
    out->mean_s = out->p50_s = out->p95_s = out->max_s = (double)NAN;
    if (!n->count)
        return 0;
    struct distribution lengths = {0};
    int rc = 0;
    for (size_t i = 0; i < n->count && !rc; i++) {
        double length_s = seconds_of(&s->all[n->order + i]);
        rc = distribution_add(room, &lengths, &length_s, 1, true, s->g->e);
    }
    out->mean_s = (double)lengths.mean;
    out->p50_s = distribution_quantile(&lengths, QUERY_P50);
    out->p95_s = distribution_quantile(&lengths, QUERY_P95);
    out->max_s = lengths.largest;
    distribution_free(room, &lengths);
    compare_members(s, name, out);
    if (n->calls > (double)n->count && n->seconds > 0) {
        out->recorded = n->count;
        out->count = (uint64_t)n->calls;
        out->total_s = n->seconds;
        out->mean_s = n->seconds / n->calls;
        out->share *= n->seconds / n->sum_s;
    }
    return rc;
}

static size_t largest(const double *values, size_t count)
{
    size_t most = 0;
    for (size_t i = 1; i < count; i++)
        most = values[i] > values[most] ? i : most;
    return most;
}

// Finds the name whose spans lie within those of `name` and take the most time, and the name whose
// spans contain most of the time of `name`.
static int find_nested(struct spans *s, size_t name, struct report_span *out)
{
    double *inner = calloc(s->name_count, sizeof *inner),
           *outer = calloc(s->name_count, sizeof *outer);
    if (!inner || !outer) {
        free(inner);
        free(outer);
        return no_memory(s->g);
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct span *p = &s->all[i];
        const uint64_t *at =
            p->parent.id
                ? map_get(&s->span_of, (struct str){(const char *)&p->parent, sizeof p->parent})
                : NULL;
        if (!at || s->all[*at].name == p->name)
            continue;
        if (s->all[*at].name == name)
            inner[p->name] += seconds_of(p);
        if (p->name == name)
            outer[s->all[*at].name] += seconds_of(p);
    }
    size_t most = largest(inner, s->name_count), around = largest(outer, s->name_count);
    double all = s->names[name].sum_s;
    if (all > 0 && inner[most] >= inner_share_least * all) {
        out->inner = s->names[most].text;
        out->inner_share = inner[most] / all;
    }
    if (outer[around] > all / 2)
        out->outer = s->names[around].text;
    free(inner);
    free(outer);
    return 0;
}

// ---------------------------------------------------------------- GPUs within spans

struct gpu {
    struct str host, gpu;
    double sum, count;
};

static void add_gpu(struct gpu *all, size_t *count, size_t most, const struct sonde_series *s,
                    bool sums)
{
    struct str host = gather_tag(s, "host"), gpu = gather_tag(s, "gpu");
    size_t i = 0;
    while (i < *count && !(str_eq(all[i].host, host) && str_eq(all[i].gpu, gpu)))
        i++;
    if (i == most)
        return;
    if (i == *count)
        all[(*count)++] = (struct gpu){host, gpu, 0, 0};
    for (size_t k = 0; k < s->count; k++)
        *(sums ? &all[i].sum : &all[i].count) += isnan(s->values[k]) ? 0 : s->values[k];
}

static int ask_gpus(struct spans *s, size_t name, struct report_span *out)
{
    static const char *const expressions[] = {"none:0all-sum:gpu_utilization_percent",
                                              "none:0all-count:gpu_utilization_percent"};
    struct report *r = s->g->report;
    const struct name *n = &s->names[name];
    size_t gpus = r->measures[REPORT_GPU].count, most = GPU_CELLS_MAX / gpus, count = 0;
    most = most > GPU_SPANS_MAX ? GPU_SPANS_MAX : most < 1 ? 1 : most;
    // If there are more spans, select those in the middle.
    size_t from = n->count > most ? (n->count - most) / 2 : 0,
           to = n->count > most ? from + most : n->count;
    struct sonde_result *result = NULL;
    char *text = arena_strdup(s->g->arena, n->text);
    struct gpu *all = arena_array(s->g->arena, gpus, sizeof *all);
    if (!text || !all)
        return no_memory(s->g);
    int rc = gather_ask(s->g, expressions, 2, text, s->all[n->order + from].start_ns,
                        s->all[n->order + to - 1].start_ns + 1000000000, &result);
    if (gather_is_too_much(rc))
        return 0;
    for (size_t i = 0; !rc && i < result->count; i++)
        add_gpu(all, &count, gpus, &result->series[i], !result->queries || !result->queries[i]);
    double sum = 0, samples = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(all[i].count > 0) || all[i].sum / all[i].count < used_percent)
            continue;
        sum += all[i].sum;
        samples += all[i].count;
    }
    if (samples > 0) {
        out->gpu_idle = fmin(fmax(1 - sum / samples / 100, 0), 1);
        out->gpu_samples = samples;
    }
    sonde_result_free(result);
    return rc;
}

// ---------------------------------------------------------------- processors within spans

static int add_cpu(const struct spans *s, struct report_span *rows)
{
    struct span_cpu *cpu = span_cpu_create(s->g->report);
    if (!cpu)
        return no_memory(s->g);
    for (size_t i = 0; i < s->name_count; i++) {
        const struct name *n = &s->names[i];
        for (size_t k = n->order; k < n->order + n->count; k++)
            span_cpu_add(cpu, s->members[s->all[k].member].host, s->all[k].start_ns,
                         s->all[k].end_ns);
        span_cpu_take(cpu, &rows[i]);
    }
    span_cpu_destroy(cpu);
    return 0;
}

// ---------------------------------------------------------------- all spans

static int longest_first(const void *a, const void *b)
{
    const struct report_span *x = a, *y = b;
    if (x->total_s != y->total_s)
        return x->total_s > y->total_s ? -1 : 1;
    return str_compare_natural(x->name, y->name);
}

static void take_total(void *user, struct str name, double calls, double seconds)
{
    struct spans *s = user;
    const uint64_t *at = map_get(&s->name_of, name);
    if (!at)
        return;
    s->names[*at].calls += calls;
    s->names[*at].seconds += seconds;
}

// The totals are those of the whole run.
static int ask_totals(struct spans *s, const struct gather_spans_request *request)
{
    if (request->start_ns || request->end_ns)
        return 0;
    for (size_t i = 0; i < s->name_count; i++)
        if (s->names[i].count >= TRACED_MAX && !s->names[i].kernel)
            return gather_totals(s->g, take_total, s);
    return 0;
}

static int make_rows(struct spans *s)
{
    struct report *r = s->g->report;
    struct distribution_room room;
    struct report_span *rows = calloc(s->name_count + 1, sizeof *rows);
    int rc = rows ? 0 : no_memory(s->g);
    distribution_room_begin(&room, DISTRIBUTION_VALUES_MAX);
    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, by_name_and_start);
    for (size_t i = s->count; i > 0; i--)
        s->names[s->all[i - 1].name].order = i - 1;
    for (size_t i = 0; i < s->count && !rc; i++) {
        uint64_t *at = map_add(
            &s->span_of, (struct str){(const char *)&s->all[i].key, sizeof s->all[i].key}, NULL);
        if (at)
            *at = i;
        else
            rc = no_memory(s->g);
    }
    for (size_t i = 0; i < s->name_count && !rc; i++)
        rc = make_row(s, i, &room, &rows[i]);
    if (!rc)
        rc = add_cpu(s, rows);
    if (!rc && s->name_count)
        qsort(rows, s->name_count, sizeof *rows, longest_first);
    r->span_total = s->name_count;
    for (size_t i = 0; i < s->name_count; i++)
        r->span_total -= s->names[i].kernel;
    for (size_t i = 0, asked = 0; i < s->name_count && r->span_count < REPORT_SPANS_MAX && !rc;
         i++) {
        size_t name = (size_t)*map_get(&s->name_of, rows[i].name);
        if (s->names[name].kernel)
            continue;
        rc = find_nested(s, name, &rows[i]);
        if (!rc && r->measures[REPORT_GPU].count && rows[i].count &&
            rows[i].share >= gpu_share_least && asked++ < GPU_NAMES_MAX)
            rc = ask_gpus(s, name, &rows[i]);
        r->spans[r->span_count++] = rows[i];
    }
    distribution_room_end(&room);
    free(rows);
    return rc;
}

static void add_time(struct buf *path, const char *key, int64_t t_ns)
{
    char text[48];
    snprintf(text, sizeof text, "%lld.%09lld", (long long)(t_ns / 1000000000),
             (long long)(t_ns % 1000000000));
    client_add_parameter(path, key, t_ns ? text : NULL);
}

int gather_spans(struct gather *g, const struct gather_spans_request *request)
{
    struct spans s = {.g = g};
    json_t *rows = NULL;
    char *missing = NULL;
    struct buf path = {0};
    buf_printf(&path, "/sonde/v1/spans?limit=%d", SPANS_READ_MAX);
    client_add_parameter(&path, "name", request->name);
    add_time(&path, "start", request->start_ns);
    add_time(&path, "end", request->end_ns);
    int rc = path.failed ? no_memory(g)
                         : client_list(g->client, buf_cstr(&path), "spans", &rows, &missing, g->e);
    buf_free(&path);
    gather_note_missing(g, missing);
    free(missing);
    g->report->spans_cut = json_array_size(rows) >= SPANS_READ_MAX;
    if (!rc && !(s.all = malloc((json_array_size(rows) + 1) * sizeof *s.all)))
        rc = no_memory(g);
    for (size_t i = 0; i < json_array_size(rows) && !rc; i++)
        rc = take_span(&s, json_array_get(rows, i));
    json_decref(rows);
    if (!rc)
        rc = ask_totals(&s, request);
    if (!rc)
        rc = make_rows(&s);
    map_free(&s.name_of);
    map_free(&s.member_of);
    map_free(&s.span_of);
    free(s.all);
    free(s.names);
    free(s.members);
    return rc;
}
