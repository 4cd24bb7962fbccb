// client.h - the functions that the parts of sonde_client.h share, and functions that only the
// commands use. A client has one or several origins: each running job is an origin, and all
// recordings together are one.
//
// A client sends a request to several origins one after another, each with job_tag (docs/http.md),
// and appends their answers to each other. It never aggregates points of different running jobs.
#ifndef SONDE_CLIENT_CLIENT_H
#define SONDE_CLIENT_CLIENT_H

#include "base/clock.h"
#include "client/origin.h"
#include "client/result.h"

#include <jansson.h>

struct sonde_client {
    struct origin **origins;
    size_t count; // number of origins, at least 1
    char *what;   // description of the target (target.h); empty if the arguments name it completely
    int timeout_ms; // 0: the default
    struct origin_look look;
    bool job_tag; // series and events get their job as a tag, even with a single origin
};

// Opens a client for a list of names. An empty list means the default target of target.h.
int client_open(const char *const *where, size_t count, const struct target_options *targets,
                const struct sonde_client_options *options, struct sonde_client **out,
                struct error *e);

// True if the client reads all data in this process.
bool client_is_recording(const struct sonde_client *c);

// Calls http_ask on the only origin. timeout_ms 0: the client's timeout. Returns -ENOTSUP if the
// client has several origins.
int client_ask(struct sonde_client *c, const char *path, struct str body, int timeout_ms,
               struct http_answer *out, struct error *e);

// Writes the query as an entry of "queries" in the body of a POST to /sonde/v1/query. Returns
// -EINVAL if the body cannot express it.
int client_plan(const struct sonde_query *q, struct buf *out, struct error *e);

// Runs a query.
int client_query(struct sonde_client *c, const struct sonde_query *q, int timeout_ms,
                 struct sonde_result **out, struct error *e);

// True if a query failed because no node knows the metric.
bool client_unknown_metric(const struct error *e);

// Requests `path` from all origins and returns the array `name` of their JSON in *out, a new
// reference. Integers above 2^63 - 1 (ids) become the negative integers with the same bits.
// *missing (may be NULL) gets the missing nodes, which the caller frees; NULL: none.
int client_list(struct sonde_client *c, const char *path, const char *name, json_t **out,
                char **missing, struct error *e);

// Times from servers and users are limited to the range from 0 to this one, so that a time plus the
// length of a part of a range cannot overflow.
#define CLIENT_TIME_MAX (INT64_MAX - NS_PER_S)
int64_t client_bound_time(int64_t t_ns);
// Returns the time `key` of an object in an answer, or `otherwise_ns` if it is missing.
int64_t client_time_of(const json_t *object, const char *key, int64_t otherwise_ns);

// Finds the times of the first and the last recorded point. *last_ns is 0 if there are no points.
// *missing is as for client_list; damaged files may be reported only by a later answer.
int client_range(struct sonde_client *c, int64_t *first_ns, int64_t *last_ns, char **missing,
                 struct error *e);

// Reads a time of a query: `ns`, or else the text. Returns `otherwise_ns` if both are missing, or
// the text is "first" or "last".
int client_read_time(const char *text, int64_t ns, int64_t otherwise_ns, int64_t *out_ns,
                     struct error *e);

// Appends "&key=value", escaped. Appends nothing if `value` is NULL.
void client_add_parameter(struct buf *path, const char *key, const char *value);

#endif
