// client.h - what the parts of sonde_client.h share, and what the commands use beside it. A client
// asks one origin, or several: running jobs, and all recordings together as one.
//
// Several origins are asked one after the other, each with job_tag (docs/http.md), and their
// answers stand beside each other: no value is made of the points of two running jobs.
#ifndef SONDE_CLIENT_CLIENT_H
#define SONDE_CLIENT_CLIENT_H

#include "client/origin.h"
#include "client/result.h"

#include <jansson.h>

struct sonde_client {
    struct origin **origins;
    size_t count;   // of them, 1 at least
    char *what;     // target.h; empty where arguments name all of it
    int timeout_ms; // 0: the default
    struct origin_look look;
};

// `where`: any number of names; none is what target.h calls nothing.
int client_open(const char *const *where, size_t count, const struct target_options *targets,
                const struct sonde_client_options *options, struct sonde_client **out,
                struct error *e);

// As http_ask, of the one origin. timeout_ms 0: the client's. -ENOTSUP: there are several.
int client_ask(struct sonde_client *c, const char *path, struct str body, int timeout_ms,
               struct http_answer *out, struct error *e);

// The query as one of "queries" in the body of a POST to /sonde/v1/query. -EINVAL: it cannot be
// asked so.
int client_plan(const struct sonde_query *q, struct buf *out, struct error *e);

// Asks it.
int client_query(struct sonde_client *c, const struct sonde_query *q, int timeout_ms,
                 struct sonde_result **out, struct error *e);

// Whether a query failed because no node knows the metric.
bool client_unknown_metric(const struct error *e);

// The array `name` of the JSON that a GET of `path` answers, of all origins. *out: a new reference.
// Integers above 2^63 - 1 (ids) are the negative ones of the same bits.
// *missing (may be NULL): who was missing, which the caller frees; NULL: nobody.
int client_list(struct sonde_client *c, const char *path, const char *name, json_t **out,
                char **missing, struct error *e);

// "&key=value", escaped; nothing where there is no value.
void client_add_parameter(struct buf *path, const char *key, const char *value);

#endif
