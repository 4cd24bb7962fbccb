// sessions.h - sessions of browsers that have opened the address with a token. Each browser gets a
// random id as its cookie, and may view.
//
// A stolen id is worthless: it is not a token, it is valid for one client only (peer_equal), and it
// becomes invalid when the process ends. At most SESSIONS_MAX sessions exist; a new one replaces
// the least recently used one.
#ifndef SONDE_HTTP_SESSIONS_H
#define SONDE_HTTP_SESSIONS_H

#include "base/str.h"
#include "http/peer.h"

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

#endif
