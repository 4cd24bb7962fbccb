// session_internal.h - shared by session.c (frames) and session_bulk.c (the bulk).
#ifndef SONDE_WIRE_SESSION_INTERNAL_H
#define SONDE_WIRE_SESSION_INTERNAL_H

#include "wire/fetches.h"
#include "wire/session.h"
#include "wire/window.h"

// The state of the bulk. TRIED: a link has described its window, and the hub fetches the first
// piece; USED: that worked; BROKEN: it did not, or no longer works.
enum way { WAY_NONE, WAY_TRIED, WAY_USED, WAY_BROKEN };

struct wire_session {
    struct wire_work flush; // the first member: the work is the session
    struct wire_session_options o;
    struct wire_channel *channel; // NULL: closed
    struct wire_handshake handshake;
    bool opened;
    bool inside;                         // within an event: freed later
    bool closing;                        // closed by its owner
    bool over;                           // `closed` was called
    struct buf in;                       // the beginning of a frame
    struct buf out;                      // flushed at the end of the loop's round
    uint64_t sent_count, received_count; // of frames with a mac
    uint64_t bytes_in, bytes_out;
    int64_t began_ns, heard_ns;
    enum way way;
    char why[128]; // why the session is broken
    uint64_t transport_bytes;
    struct window *window;       // for a link with a bulk
    struct wire_fetches fetches; // for a hub
};

// Frees a session that its owner has closed and that is not within an event.
void session_free(struct wire_session *s);

// Called for an accepted link: describes its window, if it has one and the hub supports windows.
void session_way_begin(struct wire_session *s);

// Takes frames of the bulk, and holds frames that must not overtake pieces being fetched. Returns 0
// for a frame taken here, 1 for a frame for the owner; after -EBADMSG, -ENOBUFS, -ENOMEM the
// connection ends.
int session_way_take(struct wire_session *s, const struct wire_header *h, struct str payload);

#endif
