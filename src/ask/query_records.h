// query_records.h - the kinds of parts in the answer to a QUERY. Their writer and their reader
// include it.
#ifndef SONDE_ASK_QUERY_RECORDS_H
#define SONDE_ASK_QUERY_RECORDS_H

#include "base/bytes.h"
#include "query/query.h"

enum query_part_kind { QUERY_PART_PARTIAL = 'p', QUERY_PART_COUNTS = 'c' };

struct query_counts {
    uint64_t points_read, points_from_summaries, series_read;
    uint64_t answers; // number of nodes that answered
    bool known;       // at least one of these nodes knows the metric
};
// Writes the counts, with the byte for their kind.
void query_counts_write(const struct query_counts *counts, struct buf *out);
// Reads counts. The caller has read the byte for their kind.
int query_counts_read(struct bytes *b, struct query_counts *out);

// True if the aggregate depends on the order of the series in a group.
bool query_order_matters(const struct query *q);

#endif
