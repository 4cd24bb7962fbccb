// answers.h - query results as text: a table for people, CSV, OpenTSDB's JSON.
#ifndef SONDE_CLI_ANSWERS_H
#define SONDE_CLI_ANSWERS_H

#include "base/str.h"
#include "query/query.h"

// Local times; one column a series as long as they fit beside each other, else one line a point. `unit` may be empty.
void answers_table(struct buf *out, const struct query_result *result, struct str unit);

// RFC 4180: metric, a column for every tag key, time (RFC 3339, UTC), value. NaN is an empty field.
void answers_csv(struct buf *out, const struct query_result *result);

// The answer of POST /api/query, time stamps in ms. `metric` is the name that was asked for.
void answers_json(struct buf *out, const struct query *q, struct str metric, const struct query_result *result);

// How many digits of a second the time stamps need: 0, 3, 6 or 9.
int answers_digits(const struct query_result *result);

// "2026-11-20 15:04:05.250", local time.
void answers_local_time(int64_t t_ns, int digits, char *out, size_t size);

#endif
