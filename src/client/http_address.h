// http_address.h - where a client connects to, and which token it sends there (http.h lists the
// sources of a token).
#ifndef SONDE_CLIENT_HTTP_ADDRESS_H
#define SONDE_CLIENT_HTTP_ADDRESS_H

#include "base/error.h"

#include <stdbool.h>

struct job;

// All texts are owned.
struct http_address {
    char *url; // without a slash at the end
    char *token;
    char *certificate;     // of a job on this machine that has one of its own; NULL: none
    char *socket;          // leads to the job's first node (forwarded.h); NULL: connect to the url
    bool token_given;      // by the caller, for whatever stands at the address: a tunnel, a proxy
    bool from_environment; // by SONDE_URL
    bool of_job;           // by job.json, or SONDE_URL: on other nodes it may not be reached
};

// Each fills *a, which is empty; http_address_free releases it, also after a failure. `url` NULL:
// SONDE_URL. `token` may be NULL.
int http_address_of_url(struct http_address *a, const char *url, const char *token,
                        struct error *e);
int http_address_of_job(struct http_address *a, const struct job *job, const char *token,
                        struct error *e);
int http_address_copy(struct http_address *a, const struct http_address *other, struct error *e);
void http_address_free(struct http_address *a);

bool http_address_is_loopback(const char *url);

#endif
