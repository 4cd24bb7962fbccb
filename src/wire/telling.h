// telling.h - a link's side of HOSTS: which hosts' series our own store holds, and those of the
// nodes behind us, told to the parent as soon as they are known.
//
// Our own store is looked at when somebody says that it has changed (wire_link_look: the agent,
// through who started both), at each of the parent's pings, and before each answer that is made of
// it. So the parent has heard of a host before it gets the first answer with that host's points in
// it, and at the latest a heartbeat after the store has had one. What was told goes out in order,
// before what is sent later.
//
// In the loop's thread.
#ifndef SONDE_WIRE_TELLING_H
#define SONDE_WIRE_TELLING_H

#include "wire/holders.h"
#include "wire/session.h"

struct wire_telling {
    struct str host; // our own name
    const struct wire_questions *questions;
    const struct wire_source *source; // our store
    struct hub *children;             // NULL: none
    struct wire_session *session;     // NULL: there is nobody to tell
    struct wire_held own;
    // what identifies the view that was looked at last: as long as it is the same, there is nothing
    // new
    uint64_t seen;
    struct buf out; // of the frame in hand
};

void wire_telling_begin(struct wire_telling *t, struct str host,
                        const struct wire_questions *questions, const struct wire_source *source,
                        struct hub *children);
void wire_telling_end(struct wire_telling *t);

// The parent has taken us in, over a connection on which HOSTS may be said; or that is over.
void wire_telling_connected(struct wire_telling *t, struct wire_session *session);
void wire_telling_disconnected(struct wire_telling *t);

// Looks at the store, and tells what is new. A store that cannot be opened is looked at again
// later: who asks for it is told why not.
void wire_telling_look(struct wire_telling *t);
void wire_telling_look_at(struct wire_telling *t, const struct wire_view *view);

#endif
