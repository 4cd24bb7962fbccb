// origin.h - the origin of answers: one running job, over HTTP, or recordings, read in this
// process. A caller cannot distinguish them. target.h finds the job or recordings for a name.
//
// Recordings are answered by the handlers of the HTTP faces themselves
// (aggregator/embedded_server.h): the same paths, bodies, limits and words.
//
// Thread-safe: each pending request has a connection of its own; some idle ones are kept. Continues
// to work in a child after fork().
#ifndef SONDE_CLIENT_ORIGIN_H
#define SONDE_CLIENT_ORIGIN_H

#include "aggregator/embedded_server.h"
#include "client/target.h"

enum { ORIGIN_CONNECTIONS_KEPT = 8 };

struct origin;

// Takes over the clients of the targets: either one job, or any number of recordings. Does not
// connect to a running job yet.
int origin_open(struct target *targets, size_t count, struct origin **out, struct error *e);
// NULL is allowed; no request may be pending
void origin_close(struct origin *o);
bool origin_is_recording(const struct origin *o);
const char *origin_name(const struct origin *o); // the address, or the (first) path

// A callback about 20 times a second while a request waits; true cancels it (-ECANCELED). `stop`
// NULL: no callback.
struct origin_look {
    bool (*stop)(void *user);
    void *user;
};

// Like http_ask. `look` may be NULL.
int origin_ask(struct origin *o, const char *path, struct str body, const char *type,
               int timeout_ms, const struct origin_look *look, struct http_answer *out,
               struct error *e);

// A question of one query to /sonde/v1/query, of recordings alone: -ENOTSUP, without words, of a
// job.
int origin_points(struct origin *o, struct str body, int timeout_ms,
                  struct embedded_server_points *out, struct error *e);

// Opens a stream of a running job, on a connection of its own. `look` may be NULL. -ENOTSUP: a
// recording has no streams.
int origin_stream(struct origin *o, const char *path, const struct origin_look *look,
                  struct http_stream **out, struct error *e);

#endif
