// auth.h - who may ask.
//
// With a token: it has to come with every request but those of open routes, as `Authorization: Bearer TOKEN`, as cookie
// sonde_token_PORT (browsers keep cookies by host, whatever the port: two jobs on one host must not share one), or once as ?token=TOKEN, which sets the cookie (and sends a browser on to the same page without it, so that the token
// does not stay in the address bar). Comparing takes the same time whatever is wrong.
//
// Without one (only on loopback): a page from elsewhere in somebody's browser must not read the data, neither by a name that it makes
// resolve to 127.0.0.1 (DNS rebinding: the Host header gives it away) nor as a script (Sec-Fetch-Site does).
#ifndef SONDE_AGGREGATOR_AUTH_H
#define SONDE_AGGREGATOR_AUTH_H

#include "aggregator/request.h"
#include "aggregator/respond.h"

struct auth {
    struct str token;  // empty = none needed
    struct str listen; // the address we listen on, one more name that Host may give
    int port;
    bool tls; // the cookie is for HTTPS only
};

// Same time for every `given` of one size.
bool auth_token_equal(struct str token, struct str given);

// Tokens consist of what can stand in a header, a cookie and an address as it is: A-Z a-z 0-9 - . _ ~, at most 512 of them.
bool auth_token_valid(struct str token);

// Whether the address, in digits or as "localhost", is only reachable from this machine.
bool auth_is_loopback(struct str address);

// Whether the token is in the Authorization header, which no page of another server can send. Never without a token.
bool auth_by_header(const struct auth *auth, const struct request *r);

// True: go on (a Set-Cookie header may have been added). False: the answer is complete: 401, 403 or a redirect.
bool auth_check(const struct auth *auth, struct request *r, struct answer *a);

#endif
