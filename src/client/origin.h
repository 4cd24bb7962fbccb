// origin.h - the origin of answers: one running job, over HTTP, or recordings, which this process
// reads. Callers need not distinguish them. target.h finds the job or recordings for a name.
//
// For recordings, the handlers of the HTTP faces answer (aggregator/embedded_server.h), with the
// same paths, bodies, limits and messages.
//
// Thread-safe: each pending request has a connection of its own, and some idle connections are
// kept. It continues to work in a child after fork().
#ifndef SONDE_CLIENT_ORIGIN_H
#define SONDE_CLIENT_ORIGIN_H

#include "aggregator/embedded_server.h"
#include "client/target.h"

enum { ORIGIN_CONNECTIONS_KEPT = 8 };

struct origin;

// Opens an origin, and takes over the clients of the targets: either one job, or any number of
// recordings. Does not connect to a running job yet.
int origin_open(struct target *targets, size_t count, struct origin **out, struct error *e);
// NULL is allowed; no request may be running
void origin_close(struct origin *o);
bool origin_is_recording(const struct origin *o);
const char *origin_name(const struct origin *o); // the address, or the first path

// A callback that is called about 20 times a second while a request waits. If it returns true, the
// request is cancelled (-ECANCELED). `stop` NULL: no callback.
struct origin_look {
    bool (*stop)(void *user);
    void *user;
};

// Like http_ask. `look` may be NULL.
int origin_ask(struct origin *o, const char *path, struct str body, const char *type,
               int timeout_ms, const struct origin_look *look, struct http_answer *out,
               struct error *e);

// Sends one query to /sonde/v1/query of recordings. Returns -ENOTSUP, without a message, for a job.
int origin_points(struct origin *o, struct str body, int timeout_ms,
                  struct embedded_server_points *out, struct error *e);

// Opens a stream of a running job, on a connection of its own. `look` may be NULL. Returns -ENOTSUP
// for recordings, which have no streams.
int origin_stream(struct origin *o, const char *path, const struct origin_look *look,
                  struct http_stream **out, struct error *e);

#endif
