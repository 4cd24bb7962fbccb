// exp.h - OpenTSDB's /api/query/exp: metrics, formulas over metrics and over other formulas, and
// the selected outputs.
//
//   {"time":{"start":"1h-ago","aggregator":"sum","downsampler":{"interval":"1m","aggregator":"avg","fillPolicy":{"policy":"nan"}}},
//    "filters":[{"id":"f1","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],
//    "metrics":[{"id":"a","metric":"used","filter":"f1"},{"id":"b","metric":"total","filter":"f1"}],
//    "expressions":[{"id":"e","expr":"a / b * 100","join":{"operator":"intersection"}}],
//    "outputs":[{"id":"e","alias":"used, %"}]}
//
// Metrics and formulas are nodes of one list, metrics first; a formula only uses nodes that are
// computed before it (`order`).
#ifndef SONDE_QUERY_EXP_H
#define SONDE_QUERY_EXP_H

#include "query/formula.h"
#include "query/join.h"

enum {
    EXP_BODY_BYTES_MAX = 4 << 20,
    EXP_METRICS_MAX = 64,
    EXP_FORMULAS_MAX = 64,
    EXP_OUTPUTS_MAX = 128,
};

// The substitute for a missing value.
struct exp_fill {
    double value; // NaN: no substitute
    bool null;    // a missing value is written as null, otherwise as "NaN"
};

struct exp_node {
    struct str id;
    struct exp_fill fill;
    bool is_formula;
    struct query query;     // of a metric
    struct formula formula; // of a formula, and the nodes that its names stand for
    size_t operands[FORMULA_NAMES_MAX];
    struct query_join join;
};

struct exp_output {
    size_t node;
    struct str alias; // empty: no alias
};

struct exp {
    struct exp_node *nodes;
    size_t node_count;
    size_t *order; // in which the nodes can be computed
    struct exp_output *outputs;
    size_t output_count;
};

// Everything in *out lives in `arena`. Returns -EINVAL with the reason.
int exp_parse(struct str body, int64_t now_ns, struct arena *arena, struct exp *out,
              struct error *e);

// Computes the series of all nodes, in the order of x->nodes; the series of one node share their
// times. `query` runs the query of a metric (like query_run). Returns -E2BIG past `memory_bytes` of
// the arena.
typedef int exp_query_fn(void *user, const struct query *q, struct arena *arena,
                         struct query_result *out, struct error *e);
int exp_run(const struct exp *x, exp_query_fn *query, void *user, size_t memory_bytes,
            int64_t deadline_ns, struct arena *arena, struct query_set *sets, struct error *e);

#endif
