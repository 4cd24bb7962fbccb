// fetches.h - a hub's end of one node's window: pieces being fetched, and the frames after them, in
// order of arrival.
//
//   next ◀─ [PART, 16 KiB of a question] ◀─ [END of it] ◀─ [piece, being fetched] ◀─ …
//
// If a fetch fails or its mac is wrong, the bulk is abandoned for good: the link sends all pieces
// not taken yet again over the connection (wire_fetches_again), so no part of an answer is lost.
// Memory: WIRE_WINDOW_BYTES of pieces and FETCHES_HELD_MAX of frames after them.
#ifndef SONDE_WIRE_FETCHES_H
#define SONDE_WIRE_FETCHES_H

#include "base/list.h"
#include "wire/messages.h"

enum { FETCHES_HELD_MAX = 8 << 20 };

struct fetches_item;

struct wire_fetches {
    struct wire_bulk *bulk;
    struct wire_bulk_peer *peer;
    const uint8_t *key; // of the pieces' macs
    // Called when wire_fetches_next may have an item, or when `broken` may have changed.
    void (*news)(void *user);
    void *user;
    bool broken;
    char why[128];
    struct list_link items; // in order of arrival
    struct fetches_item *given;
    // bytes of all pieces in the window, and of those taken but not yet reported to the link
    uint32_t lying, taken;
    size_t held; // bytes of frames after pieces
};

// `description` describes the link's window. Otherwise like wire_bulk_row.meet.
int wire_fetches_begin(struct wire_fetches *f, struct wire_bulk *bulk, struct str description,
                       const uint8_t *key, struct error *e);
void wire_fetches_end(struct wire_fetches *f);

// The window has a new piece, which is fetched unless the bulk is broken. Returns -EBADMSG if the
// window cannot hold it; -ENOMEM.
int wire_fetches_laid(struct wire_fetches *f, const struct wire_header *h,
                      const struct wire_laid *laid);

// Keeps a frame that must not overtake pieces; without pieces *kept is false. Returns -ENOBUFS past
// FETCHES_HELD_MAX; -ENOMEM.
int wire_fetches_hold(struct wire_fetches *f, const struct wire_header *h, struct str payload,
                      bool *kept);

// Returns the next complete item; a piece counts as a PART. Valid until the next call. Returns
// false if none is complete yet.
bool wire_fetches_next(struct wire_fetches *f, struct wire_header *h, struct str *payload);

// The number of bytes of the window that the link may reuse. `whole`: reports even small numbers.
uint32_t wire_fetches_taken(struct wire_fetches *f, bool whole);

// Stops fetching for good.
void wire_fetches_break(struct wire_fetches *f, const char *why);
// Called when the link has been told the number of taken bytes and that the bulk is broken: all
// other pieces come again, fetched ones included. `trial`: the first of them is the trial piece,
// which does not come again.
void wire_fetches_refill(struct wire_fetches *f, bool trial);
// Takes the oldest missing piece. Returns -EBADMSG if the frame is not that piece; -ENOMEM.
int wire_fetches_again(struct wire_fetches *f, const struct wire_header *h, struct str payload);

#endif
