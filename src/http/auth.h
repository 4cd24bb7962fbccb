// auth.h - the role of a request.
//
//   proof that the client sends                          at most    sent by
//   Authorization: Bearer TOKEN                          CONTROL    programs
//   Authorization: Basic, any user, TOKEN as password    WRITE      Grafana, curl
//   ?token=TOKEN in the address                          WRITE      simple programs; a browser once
//   cookie sonde_session_PORT                            VIEW       a browser, from then on
//
// The token's own role (tokens.h) is a second upper bound. A browser that opens a page with ?token=
// gets a session (sessions.h) as its cookie. The server redirects it to the same page without the
// token, so that the address bar does not keep the token. Browsers send cookies to every port of a
// host, and with requests that other pages make. So a cookie is not a token and
// allows only viewing; the server ignores it if the browser names another page, and for JSONP.
//
// A client on another node has shown that it knows the job's key (peer.h), which is kept where the
// control token is: it has the role CONTROL without a token, so that no token travels there.
//
// With open_view, a request that shows no proof at all, and comes over loopback from a socket of
// our own uid, may view. `ssh -L` is such a socket, too: everybody who reaches its other end may
// view.
//
// Without a token (only on loopback), a page from elsewhere in a browser of this machine must not
// read the data: neither by a name that it resolves to 127.0.0.1 (DNS rebinding: the Host header
// shows it) nor by a script (Sec-Fetch-Site shows it). No request has the role CONTROL then.
#ifndef SONDE_HTTP_AUTH_H
#define SONDE_HTTP_AUTH_H

#include "http/request.h"
#include "http/respond.h"
#include "http/sessions.h"
#include "http/tokens.h"

struct auth {
    char token[ROLE_COUNT][TOKEN_TEXT_MAX]; // by role; an empty control token: requests need none
    struct sessions *sessions;              // NULL: browsers get no session
    // our address, which Host may have besides the loopback names
    struct str listen;
    int port;
    bool tls;       // the cookie is for HTTPS only
    bool open_view; // programs of our own user on this machine may view without a token
};

// Sets the control token and derives the others; empty = requests need none.
void auth_set_token(struct auth *auth, struct str control);
bool auth_needs_token(const struct auth *auth);

// Takes the same time for every `given` of one size, so it reveals only the size of the token. An
// empty token equals nothing.
bool auth_token_equal(struct str token, struct str given);

// Returns ROLE_NOBODY for any other text.
enum role auth_role_of(const struct auth *auth, struct str given);

// True if the address, in digits or as "localhost", can be reached only from this machine.
bool auth_is_loopback(struct str address);

// Returns true to go on, with r->role and r->by_cookie set. Returns false if the answer is
// complete: 401, 403 or a redirect.
bool auth_check(const struct auth *auth, struct request *r, struct answer *a);

#endif
