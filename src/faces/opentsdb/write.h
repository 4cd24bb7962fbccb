// write.h - writes OpenTSDB's JSON for points, queries and annotations. It has no state and reads
// no sources.
#ifndef SONDE_FACES_OPENTSDB_WRITE_H
#define SONDE_FACES_OPENTSDB_WRITE_H

#include "base/json_writer.h"
#include "query/query.h"

struct reading;

struct opentsdb_annotations {
    const struct store_event *events; // STORE_ANNOTATION, sorted by time
    size_t count;
};

struct opentsdb_style {
    bool arrays; // writes dps as [[t,v],…]; otherwise {"t":v,…}
    bool ms;     // time stamps in ms; otherwise s
    bool show_query, show_tsuids, show_stats;
    bool annotations, global_annotations;
    int64_t shift_ns; // added to every time
};

// Writes "dps" of one series. Of several points with the same time stamp, the last one with a value
// counts. A NaN from a fill policy is written as that policy says. Any other value that JSON cannot
// express (NaN, infinities) is left out: a gap.
void opentsdb_write_points(struct json_writer *w, const struct query_series *s,
                           enum query_fill fill, const struct opentsdb_style *style);

// Writes the parsed query for showQuery.
void opentsdb_write_query(struct json_writer *w, const struct query *q, struct str metric,
                          size_t index);

// Writes a whole element of the answer. `metric` is the name in the request.
void opentsdb_write_series(struct json_writer *w, const struct query *q, size_t index,
                           struct str metric, const struct query_series *s,
                           const struct query_result *result,
                           const struct opentsdb_annotations *annotations,
                           const struct opentsdb_style *style);

// `tsuid` empty: the annotation has no series. The time is in seconds; with `ms` it is in
// milliseconds unless it is a whole second.
void opentsdb_write_annotation(struct json_writer *w, const struct store_event *event,
                               struct str tsuid, bool ms, int64_t shift_ns);

// Converts a query by tsuids to one by the metric and tags of their series; without any such series
// it stays without a metric. -EINVAL: the series have several metrics, or no tags select them
// alone.
int opentsdb_resolve_tsuids(struct reading *d, struct query *q, struct error *e);

#endif
