// origin.h - what is asked: a running job over HTTP, or recordings in this process. Who asks cannot tell them apart.
//
//   NULL, ""           the job around us, else the newest that runs here (http.h)
//   http(s)://…        that address
//   a path             a recording: one file, or a folder of them, also of several jobs
//   a word             the id of a running job, else of a recorded one
//
// Recordings are answered by the handlers of the HTTP faces themselves (aggregator/inside.h): the same paths, bodies, limits and words.
//
// Thread-safe: each question that is under way has a connection of its own, and some are kept. Works on in a child after fork().
#ifndef SONDE_CLIENT_ORIGIN_H
#define SONDE_CLIENT_ORIGIN_H

#include "client/http.h"

enum { ORIGIN_CONNECTIONS_KEPT = 8 };

struct origin;

// -ENOENT: there is nothing by that name, in words. Of a running job it is not tried yet whether it answers.
int origin_open(const char *where, const char *token, struct origin **out, struct error *e);
void origin_close(struct origin *o);             // NULL is allowed; not while a question is under way
const char *origin_name(const struct origin *o); // the address, or the path

// Asked some 20 times a second while a question waits: true cancels it (-ECANCELED). `stop` NULL: nobody.
struct origin_look {
    bool (*stop)(void *user);
    void *user;
};

// As http_ask. `look` may be NULL.
int origin_ask(struct origin *o, const char *path, struct str body, const char *type, int timeout_ms,
               const struct origin_look *look, struct http_answer *out, struct error *e);

// A stream of a running job, on a connection of its own. `look` may be NULL. -ENOTSUP: a recording has none.
int origin_stream(struct origin *o, const char *path, const struct origin_look *look, struct http_stream **out,
                  struct error *e);

#endif
