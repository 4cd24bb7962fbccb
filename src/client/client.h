// client.h - what the parts of sonde_client.h share: a client is an origin and how long its questions may take.
#ifndef SONDE_CLIENT_CLIENT_H
#define SONDE_CLIENT_CLIENT_H

#include "client/origin.h"
#include "client/result.h"

struct sonde_client {
    struct origin *origin;
    int timeout_ms; // 0: the default
    struct origin_look look;
};

// As http_ask. timeout_ms 0: the client's.
int client_ask(struct sonde_client *c, const char *path, struct str body, int timeout_ms, struct http_answer *out,
               struct error *e);

// The query as one of "queries" in the body of a POST to /sonde/v1/query. -EINVAL: it cannot be asked so.
int client_plan(const struct sonde_query *q, struct buf *out, struct error *e);

// Asks it.
int client_query(struct sonde_client *c, const struct sonde_query *q, int timeout_ms, struct sonde_result **out,
                 struct error *e);

#endif
