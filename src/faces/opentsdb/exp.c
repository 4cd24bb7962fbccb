// exp.c - /api/query/exp: formulas over metrics, answered as tables: one row for each time, one
// column for each series.
#include "query/exp.h"
#include "base/clock.h"
#include "faces/opentsdb/handlers.h"
#include "faces/opentsdb/write.h"

#include <errno.h>
#include <math.h>

struct leaf_runner {
    struct service *service;
    struct reading *reading;
    int64_t deadline_ns;
};

// The query of a metric at the times of the recording.
static struct query recorded_query(const struct leaf_runner *l, const struct query *leaf)
{
    struct query q = *leaf;
    q.start_ns = service_recorded_ns(l->service, q.start_ns);
    q.end_ns = service_recorded_ns(l->service, q.end_ns);
    return q;
}

static int run_leaf(void *user, const struct query *leaf, struct arena *arena,
                    struct query_result *out, struct error *e)
{
    const struct leaf_runner *l = user;
    return reading_run(l->reading, recorded_query(l, leaf), arena, out, e);
}

// Sends the queries of all metrics in one question.
static void prepare(const struct leaf_runner *l, const struct exp *x)
{
    struct query all[EXP_METRICS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < x->node_count; i++)
        if (!x->nodes[i].is_formula)
            all[n++] = recorded_query(l, &x->nodes[i].query);
    reading_prepare(l->reading, all, n);
}

// A missing value is written explicitly: a row has a value for every series.
static void write_value(struct json_writer *w, double value, const struct exp_fill *fill)
{
    if (isfinite(value))
        json_put_double(w, value);
    else if (fill->null)
        json_put_null(w);
    else
        json_put_string(w, STR("NaN"));
}

static void write_rows(struct json_writer *w, const struct query_set *set,
                       const struct exp_fill *fill, int64_t shift_ns)
{
    size_t rows = set->count ? set->series[0].count : 0;
    const int64_t *t_ns = rows ? set->series[0].t_ns : NULL;
    json_key(w, STR("dps"));
    json_begin_array(w);
    for (size_t row = 0; row < rows && !w->out->failed; row++) {
        json_begin_array(w);
        json_put_i64(w, (t_ns[row] + shift_ns) / NS_PER_MS);
        for (size_t i = 0; i < set->count; i++)
            write_value(w, set->series[i].values[row], fill);
        json_end_array(w);
    }
    json_end_array(w);
    json_key(w, STR("dpsMeta"));
    json_begin_object(w);
    json_key_i64(w, "firstTimestamp", rows ? (t_ns[0] + shift_ns) / NS_PER_MS : 0);
    json_key_i64(w, "lastTimestamp", rows ? (t_ns[rows - 1] + shift_ns) / NS_PER_MS : 0);
    json_key_u64(w, "setCount", rows);
    json_key_u64(w, "series", set->count);
    json_end_object(w);
}

// Finds the metrics that the node refers to, directly or through other nodes, without duplicates.
static void find_metrics(const struct exp *x, size_t node, bool *speaks_of)
{
    speaks_of[node] = true;
    // A node refers only to nodes before it.
    for (size_t i = x->node_count; i-- > 0;) {
        const struct exp_node *n = &x->nodes[x->order[i]];
        for (size_t k = 0; k < n->formula.name_count && speaks_of[x->order[i]]; k++)
            speaks_of[n->operands[k]] = true;
    }
}

static void write_metrics(struct json_writer *w, const struct exp *x, size_t node)
{
    bool speaks_of[EXP_METRICS_MAX + EXP_FORMULAS_MAX] = {false};
    find_metrics(x, node, speaks_of);
    json_key(w, STR("metrics"));
    json_begin_array(w);
    for (size_t i = 0; i < x->node_count; i++)
        if (speaks_of[i] && !x->nodes[i].is_formula)
            json_put_string(w, x->nodes[i].query.metric);
    json_end_array(w);
}

static void write_column(struct json_writer *w, const struct exp *x, size_t node, size_t index,
                         const struct query_series *s)
{
    size_t present = 0;
    for (size_t i = 0; i < s->count; i++)
        present += isfinite(s->values[i]) ? 1u : 0u;
    json_begin_object(w);
    json_key_u64(w, "index", index);
    write_metrics(w, x, node);
    json_key(w, STR("commonTags"));
    json_begin_object(w);
    for (size_t i = 0; i < s->tag_count; i++) {
        json_key(w, s->tags[i].key);
        json_put_string(w, s->tags[i].value);
    }
    json_end_object(w);
    json_key(w, STR("aggregatedTags"));
    json_begin_array(w);
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        json_put_string(w, s->aggregate_tags[i]);
    json_end_array(w);
    json_key_u64(w, "dps", present);
    json_end_object(w);
}

static void write_output(struct json_writer *w, const struct exp *x,
                         const struct exp_output *output, const struct query_set *set,
                         int64_t shift_ns)
{
    const struct exp_node *node = &x->nodes[output->node];
    json_begin_object(w);
    json_key_string(w, "id", node->id);
    if (output->alias.size)
        json_key_string(w, "alias", output->alias);
    write_rows(w, set, &node->fill, shift_ns);
    json_key(w, STR("meta"));
    json_begin_array(w);
    json_put_raw(w, STR("{\"index\":0,\"metrics\":[\"timestamp\"]}"));
    for (size_t i = 0; i < set->count; i++)
        write_column(w, x, output->node, i + 1, &set->series[i]);
    json_end_array(w);
    json_end_object(w);
}

static int answer_outputs(struct leaf_runner *l, struct request *r, const struct exp *x,
                          struct answer *a, struct error *e)
{
    struct query_set sets[EXP_METRICS_MAX + EXP_FORMULAS_MAX] = {{0}};
    struct arena work = {0};
    struct json_writer w = json_to(&a->body);
    prepare(l, x);
    int rc = exp_run(x, run_leaf, l, l->service->limits.query_memory_bytes, l->deadline_ns, &work,
                     sets, e);
    json_begin_object(&w);
    json_key(&w, STR("outputs"));
    json_begin_array(&w);
    for (size_t i = 0; i < x->output_count && !rc; i++)
        write_output(&w, x, &x->outputs[i], &sets[x->outputs[i].node], l->service->shift_ns);
    json_end_array(&w);
    json_key(&w, STR("query"));
    json_put_raw(&w, r->body); // the parser has accepted it, so it is valid JSON
    json_end_object(&w);
    arena_free(&work);
    return rc;
}

void opentsdb_exp(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct exp x;
    struct reading d;
    struct leaf_runner l = {service, &d, r->arrived_ns + service->limits.query_deadline_ns};
    if (!r->body.size) {
        answer_error(a, 400, "Missing request content: time, metrics and expressions as JSON",
                     NULL);
        return;
    }
    if (exp_parse(r->body, clock_realtime_ns(), &r->arena, &x, &e) != 0 ||
        service_read(service, r, INT64_MAX, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (answer_outputs(&l, r, &x, a, &e) != 0)
        answer_failure(a, &e);
    service_read_end(&d, a);
}
