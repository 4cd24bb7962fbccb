// result.h - an answer of /sonde/v1/query?format=binary (faces/native/binary.h) as it came; series
// are views into it.
//
// A result is shared by whoever counts himself in: its owner and the Arrow arrays made of it.
#ifndef SONDE_CLIENT_RESULT_H
#define SONDE_CLIENT_RESULT_H

#include "aggregator/inside.h"
#include "client/http.h"
#include "sonde_client.h"

struct sonde_result {
    atomic_int uses;
    struct buf body;
    struct arena arena; // texts and arrays of the series
    struct sonde_series *series;
    size_t *queries; // of each series: which query of the request it answers; NULL: there was one
    size_t count;
    uint64_t points, points_read;
    char *missing;                // NULL: nobody
    struct sonde_result **joined; // whose series these are; NULL: none
    size_t joined_count;
};

// Takes over body and `missing` of *answer, also when it fails. -EBADMSG: it is none, or was cut.
// Nothing in it is believed.
int result_read(struct http_answer *answer, struct sonde_result **out, struct error *e);

// The same of an answer that was not written down, which it takes over.
int result_of_points(struct inside_points *points, struct sonde_result **out, struct error *e);

// Several results as one. Takes them over, also when it fails.
int result_join(struct sonde_result **parts, size_t count, struct sonde_result **out,
                struct error *e);

// Of which `keep` says true, and of those the points from the *first on that it sets; the others
// go.
typedef bool result_keep_fn(void *user, const struct sonde_series *series, size_t *first);
void result_narrow(struct sonde_result *r, result_keep_fn *keep, void *user);

struct sonde_result *result_use(struct sonde_result *r);

// struct sonde_error is struct error by another name, for those who have no base/error.h.
_Static_assert(sizeof(struct sonde_error) == sizeof(struct error) &&
                   offsetof(struct sonde_error, text) == offsetof(struct error, text),
               "struct sonde_error and struct error are the same");
static inline struct error *error_inside(struct sonde_error *e)
{
    return (struct error *)(void *)e;
}

#endif
