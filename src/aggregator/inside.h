// inside.h - queries of recordings in this process, through the paths of the native face: the same
// handlers, without a server or a socket.
//
//   inside_ask("/sonde/v1/query?format=binary", body) ─▶ native_query ─▶ answer
//
// The answer is the same as that of `sonde replay` with these recordings.
#ifndef SONDE_AGGREGATOR_INSIDE_H
#define SONDE_AGGREGATOR_INSIDE_H

#include "aggregator/aggregator.h"
#include "http/respond.h"
#include "query/query.h"

enum {
    INSIDE_QUERY_BYTES = 1 << 30,  // one query's memory
    INSIDE_ANSWER_BYTES = 1 << 30, // an answer
};

struct inside;

// Files, folders, folders of those: as aggregator_options.paths with `replay`. -ENOENT: there is no
// recording. If the first one is a running job's, its agent takes over what programs have emitted
// before each question about the present (wire/drain.h).
//
// *names must outlive the recordings. Its members are those of struct aggregator_options.
struct inside_names {
    metric_alias_fn *resolve_alias;
    metric_alias_at_fn *alias_at;
    service_run_fn *describe_run;
};
int inside_open(const char *const *paths, size_t count, const struct inside_names *names,
                struct inside **out, struct error *e);
void inside_close(struct inside *in); // NULL is allowed; after all questions

// Thread-safe. Fills *out in any case (its status says how it went); the caller frees it, and
// *missing: what is not in the answer, files that cannot be read and damaged blocks (NULL:
// nothing).
void inside_ask(struct inside *in, struct str target, struct str body, int64_t timeout_ns,
                struct answer *out, char **missing);

// A question of one query to /sonde/v1/query, whose answer is not written down: a large one would
// need twice the memory. The caller frees the arena, in which all of it lies, and `missing`.
struct inside_points {
    struct arena arena;
    struct query_result result;
    struct inside_metric {
        struct str unit;
        bool counter;
    } * metrics; // of each series
    char *missing;
};
// False: the answer says why not, and is the caller's to free; nothing is in *out.
bool inside_query(struct inside *in, struct str body, int64_t timeout_ns, struct inside_points *out,
                  struct answer *failure);

#endif
