// session_internal.h - shared by session.c (frames) and session_bulk.c (the bulk).
#ifndef SONDE_WIRE_SESSION_INTERNAL_H
#define SONDE_WIRE_SESSION_INTERNAL_H

#include "wire/fetches.h"
#include "wire/mac.h"
#include "wire/session.h"
#include "wire/window.h"

// The state of the bulk. TRIED: the link has described its window, and the hub fetches the first
// piece. USED: this fetch has succeeded. BROKEN: it has failed, or a later one has.
enum bulk_state { BULK_NONE, BULK_TRIED, BULK_USED, BULK_BROKEN };

// A link's window, and the macs of its pieces.
struct session_window {
    struct window ring;
    struct wire_mac_key key;
    uint64_t laid; // number of pieces so far
};

struct wire_session {
    struct wire_work flush; // the first member: the work is the session
    struct wire_session_options o;
    struct wire_channel *channel; // NULL: closed
    struct wire_handshake handshake;
    bool opened;                               // the handshake is done
    bool inside;                               // an event is running; the session is freed after it
    bool closing;                              // its owner has closed it
    bool over;                                 // the event `closed` was called
    struct buf in;                             // an incomplete frame
    struct buf out;                            // frames to send; flushed before the loop sleeps
    struct wire_mac_key send_key, receive_key; // once the handshake is done
    uint64_t sent_count, received_count;       // of frames with a mac
    uint64_t bytes_in, bytes_out;
    int64_t began_ns, last_frame_ns;
    enum bulk_state bulk_state;
    char why[128]; // why the bulk is not used
    uint64_t transport_bytes;
    struct session_window *window; // only for a link with a bulk
    struct wire_fetches fetches;   // only for a hub
};

// Frees a session that its owner has closed, unless an event is running.
void session_free(struct wire_session *s);

// Called when the parent has accepted a link: describes the window, if the link has one and the hub
// supports windows.
void session_bulk_begin(struct wire_session *s);

// Handles frames of the bulk, and holds frames that must not overtake pieces. Returns 0 for a frame
// that it has handled or holds, 1 for a frame that the owner must handle. After -EBADMSG, -ENOBUFS
// and -ENOMEM the connection ends.
int session_bulk_take(struct wire_session *s, const struct wire_header *h, struct str payload);

#endif
