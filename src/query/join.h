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
    bool intersection;      // keep rows that every set has; otherwise rows that any set has
    bool aggregate_tags;    // series match only if they have the same aggregated keys
    const struct str *keys; // only these tags are compared; NULL: all
    size_t key_count;
};

struct query_joined {
    const struct query_series **members; // one of each set, NULL if the set has none
    const struct store_label *tags;      // shared by all members, sorted by key
    size_t tag_count;
    const struct str *aggregate_tags; // the other keys, sorted
    size_t aggregate_tag_count;
};

// The result is ordered by tags and lives in `arena`; it points into the series. Returns -EINVAL if
// two series of one set match the same others, -E2BIG past QUERY_JOIN_SETS_MAX.
int query_join(const struct query_join *join, const struct query_set *sets, size_t set_count,
               struct arena *arena, struct query_joined **out, size_t *count, struct error *e);

// The times of all series together, ascending, each once. Skips NULL series. Returns 0 or -ENOMEM.
int query_join_times(const struct query_series *const *series, size_t count, struct arena *arena,
                     const int64_t **out, size_t *rows);

// Writes the values of a series at those times, with `fill` for missing values and NaN. `s` NULL: a
// series without points.
void query_join_values(const struct query_series *s, const int64_t *t_ns, size_t rows, double fill,
                       double *out);

#endif
