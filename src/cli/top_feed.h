// top_feed.h - fills a top_model from a running job or a recording, through sonde_client.h.
//
// A tick asks for what is new since the last one: one request a table with all of its columns, over
// the last three buckets, in binary; so 100 nodes × 9 columns are 900 series of 3 points. The whole
// window is asked for when a view opens or the time jumps. The job's facts come every 2 s, the
// names of metrics every 5 s, findings and restarts every 10 s. After a failure it waits 0.5 to 4 s
// before it asks again. From the third failure on it looks for the job by its id, too: the job
// serves another address then, or its recording answers.
#ifndef SONDE_CLI_TOP_FEED_H
#define SONDE_CLI_TOP_FEED_H

#include "cli/top_model.h"
#include "client/client.h"

struct top_metric {
    const char *name, *unit;
    bool counter;
    bool user;       // a user emits it; else a built-in metric of GPUs
    bool tags_known; // `ranked` is known
    bool ranked;     // its series carry the tag rank
};

struct top_feed {
    struct sonde_client *client;                // owned
    const struct sonde_client_options *options; // of `client`
    bool by_id; // the job may be looked for by its id: the user named no address and no path
    int failures;
    int64_t findings_at_ns, restarts_at_ns, findings_end_ns, restarts_from_ns;
    int64_t facts_at_ns, metrics_at_ns, events_at_ns, retry_at_ns; // monotonic; 0: due
    int64_t failing_since_ns;                                      // real time; 0: it answers
    int64_t pause_ns;
    struct top_metric *metrics;
    size_t metric_count, metrics_left_out;
    struct arena metrics_arena;
    struct buf body;
};

// Asks for what is due. True: the model has changed. A failure is in m->job.trouble, and what is
// there stays.
bool top_feed_tick(struct top_feed *f, struct top_model *m);
// The view or the time has changed: everything of it is due.
void top_feed_due(struct top_feed *f);
void top_feed_free(struct top_feed *f);

// Puts an answer of POST /sonde/v1/query?format=binary into the table. columns[q] and rows[q] are
// those of query q; a row NULL is made from the series' tags. -EBADMSG: a query that was not asked.
int top_feed_take(struct top_table *t, const size_t *columns, const char *const *rows,
                  size_t queries, const struct sonde_result *result);

#endif
