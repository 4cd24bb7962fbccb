// query_records.h - the kinds of records of a QUERY's answer, for the side that writes and the one
// that reads them.
#ifndef SONDE_ASK_QUERY_RECORDS_H
#define SONDE_ASK_QUERY_RECORDS_H

#include "base/bytes.h"
#include "query/query.h"

enum query_record { QUERY_RECORD_PARTIAL = 'p', QUERY_RECORD_COUNTS = 'c' };

struct query_counts {
    uint64_t points_read, points_from_summaries, series_read;
    uint64_t answers; // of so many nodes
    bool known;       // the metric, by any of them
};
void query_counts_write(const struct query_counts *counts, struct buf *out); // with its kind
int query_counts_read(struct bytes *b, struct query_counts *out);            // behind its kind

// Whether the order of the series in a group shows in its aggregate.
bool query_order_matters(const struct query *q);

#endif
