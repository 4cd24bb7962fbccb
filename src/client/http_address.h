// http_address.h - the address to which a client connects, and the token that it sends there
// (http.h lists the sources of a token).
#ifndef SONDE_CLIENT_HTTP_ADDRESS_H
#define SONDE_CLIENT_HTTP_ADDRESS_H

#include "base/error.h"

#include <stdbool.h>

struct job;

// The struct owns all texts.
struct http_address {
    char *url; // without a slash at the end
    char *token;
    char *certificate; // certificate of a job on this machine; NULL: it has none of its own
    // socket that leads to the job's first node (forwarded.h); NULL: connect to the url
    char *socket;
    // the caller has passed the token, which is valid even if the address leads to a tunnel or a
    // proxy
    bool token_given;
    bool from_environment; // the address is from SONDE_URL
    bool of_job; // the address is from job.json or SONDE_URL; on other nodes it may be unreachable
};

// Each function fills *a. Call http_address_free afterwards, also after a failure. `url` NULL:
// SONDE_URL. `token` may be NULL.
int http_address_of_url(struct http_address *a, const char *url, const char *token,
                        struct error *e);
int http_address_of_job(struct http_address *a, const struct job *job, const char *token,
                        struct error *e);
int http_address_copy(struct http_address *a, const struct http_address *other, struct error *e);
void http_address_free(struct http_address *a);

bool http_address_is_loopback(const char *url);

#endif
