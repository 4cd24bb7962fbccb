// top_feed.h - fills a top_model from a running job or a recording, through sonde_client.h.
//
// A tick requests the new data since the last tick: for each table one binary request with all of
// its columns, over the last three buckets. So 100 nodes × 9 columns are 900 series of 3 points.
// When a view opens or the time jumps, the tick requests the whole window. It also does so every 10
// s, for points that arrive late. It requests the job's facts every 2 s, the names of metrics every
// 5 s, findings and restarts every 10 s. After a failure it waits 0.5 to 4 s before the next
// request. From the third failure on, it also searches the job by its id, because the job may have
// another address, or only its recording may be left.
#ifndef SONDE_CLI_TOP_FEED_H
#define SONDE_CLI_TOP_FEED_H

#include "cli/top_model.h"
#include "client/client.h"

struct top_metric {
    const char *name, *unit;
    bool counter;
    bool user;       // a metric that users emit; otherwise a built-in metric of GPUs
    bool tags_known; // `ranked` is known
    bool ranked;     // its series have the tag rank
};

struct top_feed {
    struct sonde_client *client;                // owned
    const struct sonde_client_options *options; // options with which `client` was opened
    bool by_id; // the job may be searched by its id, because the user named no address and no path
    int failures;
    int64_t findings_at_ns, restarts_at_ns, findings_end_ns, restarts_from_ns;
    bool take_late;     // this tick requests the whole window
    int64_t late_at_ns; // monotonic time of the next such tick
    int64_t facts_at_ns, metrics_at_ns, events_at_ns, retry_at_ns; // monotonic; 0: due now
    int64_t failing_since_ns;                                      // real time; 0: requests succeed
    int64_t pause_ns;
    struct top_metric *metrics;
    size_t metric_count, metrics_left_out;
    struct arena metrics_arena;
    struct buf body;
};

// Sends the requests that are due. Returns true if the model has changed. After a failure, the
// reason is in m->job.trouble, and the data stay.
bool top_feed_tick(struct top_feed *f, struct top_model *m);
// Makes all requests due, because the view or the time has changed.
void top_feed_due(struct top_feed *f);
void top_feed_free(struct top_feed *f);

// Stores an answer of POST /sonde/v1/query?format=binary in the table. columns[q] and rows[q] are
// the column and row of query q. If the row is NULL, the series' tags give the row. Returns
// -EBADMSG if the answer has a query that was not sent.
int top_feed_take(struct top_table *t, const size_t *columns, const char *const *rows,
                  size_t queries, const struct sonde_result *result);

#endif
