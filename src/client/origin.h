// origin.h - one running job, asked over HTTP, or recordings, asked in this process. A caller
// cannot tell them apart. target.h says which job or recordings a name means.
//
// Recordings are answered by the handlers of the HTTP faces themselves (aggregator/inside.h): the
// same paths, bodies, limits and words.
//
// Thread-safe: each question that is under way has a connection of its own, and some are kept.
// Works on in a child after fork().
#ifndef SONDE_CLIENT_ORIGIN_H
#define SONDE_CLIENT_ORIGIN_H

#include "aggregator/inside.h"
#include "client/target.h"

enum { ORIGIN_CONNECTIONS_KEPT = 8 };

struct origin;

// Takes over the clients of the targets. Either one job, or any number of recordings. Whether a
// running job answers is not tried yet.
int origin_open(struct target *targets, size_t count, struct origin **out, struct error *e);
// NULL is allowed; not while a question is under way
void origin_close(struct origin *o);
const char *origin_name(const struct origin *o); // the address, or the (first) path

// Asked some 20 times a second while a question waits: true cancels it (-ECANCELED). `stop` NULL:
// nobody.
struct origin_look {
    bool (*stop)(void *user);
    void *user;
};

// As http_ask. `look` may be NULL.
int origin_ask(struct origin *o, const char *path, struct str body, const char *type,
               int timeout_ms, const struct origin_look *look, struct http_answer *out,
               struct error *e);

// A question of one query to /sonde/v1/query, of recordings alone: -ENOTSUP, without words, of a
// job.
int origin_points(struct origin *o, struct str body, int timeout_ms, struct inside_points *out,
                  struct error *e);

// A stream of a running job, on a connection of its own. `look` may be NULL. -ENOTSUP: a recording
// has none.
int origin_stream(struct origin *o, const char *path, const struct origin_look *look,
                  struct http_stream **out, struct error *e);

#endif
