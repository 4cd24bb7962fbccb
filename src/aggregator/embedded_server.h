// embedded_server.h - queries recordings in this process with the handlers of the native face,
// without a server or a socket.
//
//   embedded_server_ask("/sonde/v1/query?format=binary", body) ─▶ native_query ─▶ answer
//
// The answer is the same as that of `sonde replay` with these recordings.
#ifndef SONDE_AGGREGATOR_EMBEDDED_SERVER_H
#define SONDE_AGGREGATOR_EMBEDDED_SERVER_H

#include "aggregator/aggregator.h"
#include "http/respond.h"
#include "query/query.h"

enum {
    EMBEDDED_QUERY_BYTES = 1 << 30,  // memory limit of one query
    EMBEDDED_ANSWER_BYTES = 1 << 30, // size limit of an answer
};

struct embedded_server;

// Opens files, folders, or folders of folders, like aggregator_options.paths with `replay`.
// -ENOENT: no recording exists there. If the first one belongs to a running job, its agent takes
// over points of programs before each request about the present (wire/drain.h).
//
// *names must outlive the recordings. Its members are those of struct aggregator_options.
struct embedded_server_names {
    metric_alias_fn *resolve_alias;
    metric_alias_at_fn *alias_at;
    service_run_fn *describe_run;
};
int embedded_server_open(const char *const *paths, size_t count,
                         const struct embedded_server_names *names, struct embedded_server **out,
                         struct error *e);
// NULL is allowed. No request may be running.
void embedded_server_close(struct embedded_server *in);

// Answers a request. Thread-safe. Fills *out in any case, with a status. *missing lists the
// unreadable files and damaged blocks whose data the answer lacks (NULL: the answer is complete).
// The caller frees both.
void embedded_server_ask(struct embedded_server *in, struct str target, struct str body,
                         int64_t timeout_ns, struct answer *out, char **missing);

// The result of one query to /sonde/v1/query, as plain data, because encoding a large result would
// take twice the memory. The caller frees the arena, which holds the result, and `missing`.
struct embedded_server_points {
    struct arena arena;
    struct query_result result;
    struct embedded_server_metric {
        struct str unit;
        bool counter;
    } * metrics; // for each series
    char *missing;
};
// Returns false if the query fails. *failure is then the answer with the reason, which the caller
// frees, and *out is empty.
bool embedded_server_query(struct embedded_server *in, struct str body, int64_t timeout_ns,
                           struct embedded_server_points *out, struct answer *failure);

#endif
