// sessions.h - sessions of browsers that have opened the address with a token. Each browser gets a
// random id as its cookie, and may view.
//
// A stolen id is worthless: it is not a token, it is valid for one client only (peer_equal), and it
// becomes invalid when the process ends. At most SESSIONS_MAX sessions exist; a new one replaces
// the least recently used one.
//
// A page may write only with the key of its session. The key is a second random text, which the
// page gets once, in the answer to a request with a token (sessions_raise), and keeps in its
// memory. So neither the cookie alone, nor a page of another server, can write.
#ifndef SONDE_HTTP_SESSIONS_H
#define SONDE_HTTP_SESSIONS_H

#include "base/str.h"
#include "http/peer.h"
#include "http/tokens.h"

enum {
    SESSIONS_MAX = 64,
    SESSION_ID_SIZE = 64, // characters
    SESSION_IDLE_S = 86400,
};

struct sessions;

struct sessions *sessions_create(void); // NULL: out of memory
void sessions_destroy(struct sessions *s);

// Makes a session for this client. Returns false if the kernel provides no random numbers.
// Thread-safe, like the functions below.
bool sessions_open(struct sessions *s, const struct peer *peer, char id[SESSION_ID_SIZE + 1]);

bool sessions_check(struct sessions *s, struct str id, const struct peer *peer);

// Gives the session of this client a new key with this role; an earlier key becomes invalid.
// Returns false if there is no such session, or the kernel provides no random numbers.
bool sessions_raise(struct sessions *s, struct str id, const struct peer *peer, enum role role,
                    char key[SESSION_ID_SIZE + 1]);

// The role of the session's key; ROLE_NOBODY if the session has no key or another one.
enum role sessions_role(struct sessions *s, struct str id, const struct peer *peer, struct str key);

#endif
