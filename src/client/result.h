// result.h - a response of /sonde/v1/query?format=binary (faces/native/binary.h), kept as it was
// received; series are views into it.
//
// A result has a reference count: its owner and each Arrow array made of it hold a reference.
#ifndef SONDE_CLIENT_RESULT_H
#define SONDE_CLIENT_RESULT_H

#include "aggregator/embedded_server.h"
#include "client/http.h"
#include "sonde_client.h"

struct sonde_result {
    atomic_int uses;
    struct buf body;
    struct arena arena; // holds texts and arrays of the series
    struct sonde_series *series;
    // for each series, the index of its query in the request; NULL: the request had one query
    size_t *queries;
    size_t count;
    uint64_t points, points_read;
    char *missing; // NULL: no node was missing
    // the results that this one joins, which own its series; NULL: none
    struct sonde_result **joined;
    size_t joined_count;
};

// Reads a response. Takes over body and `missing` of *answer, also on failure. It checks all
// contents, and returns -EBADMSG for a truncated or invalid response.
int result_read(struct http_answer *answer, struct sonde_result **out, struct error *e);

// Makes a result of points that were not encoded as a response. Takes over the points.
int result_of_points(struct embedded_server_points *points, struct sonde_result **out,
                     struct error *e);

// Joins several results to one. Takes them over, also on failure.
int result_join(struct sonde_result **parts, size_t count, struct sonde_result **out,
                struct error *e);

// Keeps the series for which `keep` returns true, and removes the others. `keep` sets *first; the
// points before it are removed, too.
typedef bool result_keep_fn(void *user, const struct sonde_series *series, size_t *first);
void result_narrow(struct sonde_result *r, result_keep_fn *keep, void *user);

struct sonde_result *result_use(struct sonde_result *r);

// struct sonde_error is struct error under a public name, for callers without base/error.h.
_Static_assert(sizeof(struct sonde_error) == sizeof(struct error) &&
                   offsetof(struct sonde_error, text) == offsetof(struct error, text),
               "struct sonde_error and struct error are the same");
static inline struct error *error_inside(struct sonde_error *e)
{
    return (struct error *)(void *)e;
}

#endif
