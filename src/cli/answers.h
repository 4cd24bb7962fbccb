// answers.h - query results as text: a table for people, CSV, OpenTSDB's JSON.
#ifndef SONDE_CLI_ANSWERS_H
#define SONDE_CLI_ANSWERS_H

#include "base/str.h"
#include "query/query.h"

// Single points are listed series by series, or (per span) in order of time. At equal times, they
// have the order of their series.
enum answers_order { ANSWERS_BY_SERIES, ANSWERS_BY_TIME };

// Writes a table with local times: one column per series if they fit side by side, else one line
// per point. `unit` may be empty.
void answers_table(struct buf *out, const struct query_result *result, struct str unit,
                   enum answers_order order);

// Writes CSV (RFC 4180): metric, a column for every tag key, time (RFC 3339, UTC), value. NaN is an
// empty field.
void answers_csv(struct buf *out, const struct query_result *result, enum answers_order order);

// Writes the response of POST /api/query, with time stamps in ms. `metric` is the name in the
// request.
void answers_json(struct buf *out, const struct query *q, struct str metric,
                  const struct query_result *result);

// Returns the number of decimals of a second that the time stamps need: 0, 3, 6 or 9.
int answers_digits(const struct query_result *result);

// Writes "2026-11-20 15:04:05.250", local time.
void answers_local_time(int64_t t_ns, int digits, char *out, size_t size);
// Writes "2026-11-20T14:04:05.250Z".
void answers_utc_time(int64_t t_ns, int digits, char *out, size_t size);

#endif
