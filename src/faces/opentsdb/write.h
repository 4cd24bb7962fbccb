// write.h - OpenTSDB's JSON for points, queries, annotations. No state, no sources: what it is
// given is what it writes.
#ifndef SONDE_FACES_OPENTSDB_WRITE_H
#define SONDE_FACES_OPENTSDB_WRITE_H

#include "base/json_writer.h"
#include "query/query.h"

struct reading;

struct opentsdb_annotations {
    const struct store_event *events; // STORE_ANNOTATION, by time
    size_t count;
};

struct opentsdb_style {
    bool arrays; // dps as [[t,v],…], else {"t":v,…}
    bool ms;     // time stamps in ms, else s
    bool show_query, show_tsuids, show_stats;
    bool annotations, global_annotations;
    int64_t shift_ns; // added to every time
};

// "dps" of one series. Of the points that fall on one time stamp the last with a value counts. NaN
// that a fill policy put is written as that policy says; every other value that is no number JSON
// has (NaN, infinities) is left out: a gap.
void opentsdb_write_points(struct json_writer *w, const struct query_series *s,
                           enum query_fill fill, const struct opentsdb_style *style);

// The query as it was understood, as showQuery wants it.
void opentsdb_write_query(struct json_writer *w, const struct query *q, struct str metric,
                          size_t index);

// A whole element of the answer. `metric` is the name that was asked for.
void opentsdb_write_series(struct json_writer *w, const struct query *q, size_t index,
                           struct str metric, const struct query_series *s,
                           const struct query_result *result,
                           const struct opentsdb_annotations *annotations,
                           const struct opentsdb_style *style);

// `tsuid` empty: of no series. The time is in seconds; with `ms` it is in milliseconds unless it is
// a whole second.
void opentsdb_write_annotation(struct json_writer *w, const struct store_event *event,
                               struct str tsuid, bool ms, int64_t shift_ns);

// Of a query by tsuids makes one of the metric and the tags of their series; without a metric still
// where there are none. -EINVAL: the series are of several metrics, or no tags select them alone.
int opentsdb_resolve_tsuids(struct reading *d, struct query *q, struct error *e);

#endif
