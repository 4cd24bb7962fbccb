// sessions.h - browsers that have opened the address with a token: each has a random word as its cookie, and may view.
//
// The word is worth nothing elsewhere: it is no token, goes with one client alone (peer_equal: another user of this machine who is sent it
// cannot use it), and is forgotten with this process. At most SESSIONS_MAX; the one that was not used for longest makes room.
#ifndef SONDE_AGGREGATOR_SESSIONS_H
#define SONDE_AGGREGATOR_SESSIONS_H

#include "aggregator/peer.h"
#include "base/str.h"

enum {
    SESSIONS_MAX = 64,
    SESSION_ID_SIZE = 64, // characters
    SESSION_IDLE_S = 86400,
};

struct sessions;

struct sessions *sessions_create(void); // NULL: no memory
void sessions_destroy(struct sessions *s);

// A new one, for this client. False: no random numbers. Thread-safe, as what follows.
bool sessions_open(struct sessions *s, const struct peer *peer, char id[SESSION_ID_SIZE + 1]);

bool sessions_check(struct sessions *s, struct str id, const struct peer *peer);

#endif
