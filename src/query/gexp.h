// gexp.h - Graphite's notation:
// "divideSeries(sum:1s-avg:used{host=*},timeShift(sum:1s-avg:used{host=*},'1h'))".
//
//   expression = function "(" argument { "," argument } ")"  |  a query as in m= (parse_m.c)
//   argument   = expression  |  number  |  'text'  |  "text"
//
// The parser builds a tree and checks its calls against one table of functions (gexp.c); the runner
// works from the leaves up, series by series. A function of one set of series keeps their metric;
// the result of a function of several sets is named after the function's text.
#ifndef SONDE_QUERY_GEXP_H
#define SONDE_QUERY_GEXP_H

#include "query/join.h"

enum {
    GEXP_TEXT_MAX = 64 * 1024,
    GEXP_DEPTH_MAX = 32,
    GEXP_QUERIES_MAX = 64,   // in one expression
    GEXP_ARGUMENTS_MAX = 26, // arguments of one function, as in OpenTSDB
};

struct gexp_node;

struct gexp {
    const struct gexp_node *root;
    size_t query_count;
};

// Everything in *out lives in `arena`. Returns -EINVAL with the reason.
int gexp_parse(struct str text, struct arena *arena, struct gexp *out, struct error *e);

// Runs a query of the expression with its times `shift_ns` earlier than the expression's; results
// live in `arena`. Otherwise like query_run.
typedef int gexp_query_fn(void *user, const struct query *q, int64_t shift_ns, struct arena *arena,
                          struct query_result *out, struct error *e);

struct gexp_run {
    gexp_query_fn *query;
    void *user;
    struct arena *arena; // for intermediate results and the result
    size_t memory_bytes; // limit of `arena`; past it: -E2BIG
    int64_t deadline_ns; // CLOCK_MONOTONIC; 0 = none. -ETIMEDOUT
};

// The first query of the expression, as written.
const struct query *gexp_first_query(const struct gexp *x);

// Calls take with each query of the expression, in the order in which gexp_evaluate runs them, and
// with the same shift. It leaves out the queries under a timeShift that gexp_evaluate refuses.
typedef void gexp_take_fn(void *user, const struct query *q, int64_t shift_ns);
void gexp_queries(const struct gexp *x, gexp_take_fn *take, void *user);

int gexp_evaluate(const struct gexp *x, const struct gexp_run *run, struct query_set *out,
                  struct error *e);

#endif
