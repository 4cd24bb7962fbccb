// session_internal.h - what session.c (frames) and session_way.c (the way beside the connection)
// share.
#ifndef SONDE_WIRE_SESSION_INTERNAL_H
#define SONDE_WIRE_SESSION_INTERNAL_H

#include "wire/fetches.h"
#include "wire/session.h"
#include "wire/window.h"

// The way beside the connection: a link describes its window (TRIED), the hub fetches the first
// piece and says whether it is USED; BROKEN: not (any more).
enum way { WAY_NONE, WAY_TRIED, WAY_USED, WAY_BROKEN };

struct wire_session {
    struct wire_work flush; // first: the work is the session
    struct wire_session_options o;
    struct wire_channel *channel; // NULL: gone
    struct wire_handshake handshake;
    bool opened;
    bool inside;                         // in an event: freed later
    bool closing;                        // by its owner
    bool over;                           // `closed` was called
    struct buf in;                       // the beginning of a frame
    struct buf out;                      // until the loop's round is over
    uint64_t sent_count, received_count; // of frames with a mac
    uint64_t bytes_in, bytes_out;
    int64_t began_ns, heard_ns;
    enum way way;
    char why[128]; // it is broken
    uint64_t way_bytes;
    struct window *window;       // a link's that has a bulk
    struct wire_fetches fetches; // a hub's
};

// Its owner has closed it, and nobody is inside.
void session_free(struct wire_session *s);

// A link that was taken in describes its window, where it has one and the hub knows what that is.
void session_way_begin(struct wire_session *s);

// What is not for the owner: it belongs to the way, or must not overtake what is being fetched. 0:
// it was taken here; 1: it is the owner's; -EBADMSG, -ENOBUFS, -ENOMEM: the connection ends.
int session_way_take(struct wire_session *s, const struct wire_header *h, struct str payload);

#endif
