// join.h - the results of several queries side by side: series matched by their tags, on the same
// times.
//
//   set a: host=1  host=2          union:        host=1 (a, b)   host=2 (a, b)   host=3 (-, b)
//   set b: host=1  host=2  host=3  intersection: host=1 (a, b)   host=2 (a, b)
#ifndef SONDE_QUERY_JOIN_H
#define SONDE_QUERY_JOIN_H

#include "query/query.h"

enum { QUERY_JOIN_SETS_MAX = 64 };

struct query_set {
    const struct query_series *series;
    size_t count;
};

struct query_join {
    bool intersection;      // only what every set has; else what any set has
    bool aggregate_tags;    // series match only when the same keys were aggregated in them
    const struct str *keys; // only these tags are compared; NULL: all
    size_t key_count;
};

struct query_joined {
    const struct query_series **members; // one of each set, NULL where the set has none
    const struct store_label *tags;      // those that all members have, sorted by key
    size_t tag_count;
    const struct str *aggregate_tags; // the other keys, sorted
    size_t aggregate_tag_count;
};

// The result is ordered by tags and lives in `arena`; it copies nothing of the series. -EINVAL: two
// series of one set match the same others, -E2BIG: QUERY_JOIN_SETS_MAX.
int query_join(const struct query_join *join, const struct query_set *sets, size_t set_count,
               struct arena *arena, struct query_joined **out, size_t *count, struct error *e);

// The times of all series together, ascending, each once. NULL series are passed over. -ENOMEM.
int query_join_times(const struct query_series *const *series, size_t count, struct arena *arena,
                     const int64_t **out, size_t *rows);

// The values of a series at those times, `fill` where it has none or NaN. NULL: a series without
// points.
void query_join_values(const struct query_series *s, const int64_t *t_ns, size_t rows, double fill,
                       double *out);

#endif
