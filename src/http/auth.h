// auth.h - the role of a request.
//
//   proof that the client sends                          at most    sent by
//   Authorization: Bearer TOKEN                          CONTROL    programs
//   X-Sonde-Token: TOKEN                                 CONTROL    sonde's page: some proxies keep
//                                                                   Authorization for themselves
//   Authorization: Basic, any user, TOKEN as password    WRITE      Grafana, curl
//   ?token=TOKEN in the address                          WRITE      simple programs; a browser once
//   cookie sonde_session_PORT                            VIEW       a browser, from then on
//   that cookie, and X-Sonde-Session-Key: KEY            CONTROL    sonde's page, after it has sent
//                                                                   a token
//
// The token's own role (tokens.h) is a second upper bound. A browser that opens a page with ?token=
// gets a session (sessions.h) as its cookie. The server redirects it to the same page without the
// token, so that the token does not stay in the address bar. Browsers send cookies to every port of
// a host, and with requests that other pages make. So a cookie is not a token, and allows only
// viewing. The server ignores it for JSONP, and if the browser names another page as the sender.
// With the key of the session, which only the page's memory holds, a request also has the role of
// the token with which the page got the key (auth_raise_session). Routes restrict it further
// (routes.h).
//
// A client on another node has proved that it knows the job's key (peer.h). The key is in the same
// folder as the control token. So such a client has the role CONTROL without a token, and no token
// travels over the network.
//
// With open_view, a request without any proof may view if it comes over loopback from a socket of
// our own uid. The socket of `ssh -L` is such a socket, too, so every user who reaches its other
// end may view.
//
// If the server has no token (only on loopback), a page of another site in a browser on this
// machine must not read the data. It could try with a name that resolves to 127.0.0.1 (DNS
// rebinding), which the Host header shows, or with a script, which Sec-Fetch-Site shows. Without a
// token, no request has the role CONTROL.
#ifndef SONDE_HTTP_AUTH_H
#define SONDE_HTTP_AUTH_H

#include "http/request.h"
#include "http/respond.h"
#include "http/sessions.h"
#include "http/tokens.h"

struct auth {
    // token of each role; an empty control token: requests need no token
    char token[ROLE_COUNT][TOKEN_TEXT_MAX];
    struct sessions *sessions; // NULL: browsers get no session
    // our address, which Host may have besides the loopback names
    struct str listen;
    int port;
    bool tls;       // the server speaks HTTPS, so the cookie is for HTTPS only
    bool open_view; // programs of our own user on this machine may view without a token
};

// Sets the control token and derives the other tokens; empty = requests need no token.
void auth_set_token(struct auth *auth, struct str control);
bool auth_needs_token(const struct auth *auth);

// Takes the same time for all `given` of one size, so the time reveals only the size of the token.
// Returns false for an empty token.
bool auth_token_equal(struct str token, struct str given);

// Returns ROLE_NOBODY if `given` is none of the tokens.
enum role auth_role_of(const struct auth *auth, struct str given);

// True if only this machine can reach the address, which is numeric or "localhost".
bool auth_is_loopback(struct str address);

// Returns true if the request may go on, with r->role and r->by_cookie set. Returns false if the
// answer is complete: 401, 403 or a redirect.
bool auth_check(const struct auth *auth, struct request *r, struct answer *a);

// Gives the session in the cookie of an admitted request a key with the role of the request.
// Returns false if another server's page sent the request, or if it has no session.
bool auth_raise_session(const struct auth *auth, const struct request *r,
                        char key[SESSION_ID_SIZE + 1]);

#endif
