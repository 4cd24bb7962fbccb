// fetches.h - a hub's end of one node's window: the pieces that the hub fetches, and the frames
// that arrived after them, in order of arrival.
//
//   next ◀─ [PART, 16 KiB of a question] ◀─ [END of it] ◀─ [piece, being fetched] ◀─ …
//
// If a fetch fails or its mac is wrong, the hub stops using the bulk. The link then sends all
// pieces that the hub has not taken again over the connection (wire_fetches_again), so no part of
// an answer is lost. Memory: WIRE_WINDOW_BYTES of pieces, and FETCHES_HELD_MAX of frames that wait
// behind them.
#ifndef SONDE_WIRE_FETCHES_H
#define SONDE_WIRE_FETCHES_H

#include "base/list.h"
#include "wire/mac.h"
#include "wire/messages.h"

enum { FETCHES_HELD_MAX = 8 << 20 };

struct fetches_item;

struct wire_fetches {
    struct wire_bulk *bulk;
    struct wire_bulk_peer *peer;
    struct wire_mac_key *key; // owned: of the macs of pieces
    uint64_t laid;            // number of pieces so far
    // Called when wire_fetches_next may have an item, or when `broken` may have changed.
    void (*news)(void *user);
    void *user;
    bool broken;
    char why[128];
    struct list_link items; // in order of arrival
    struct fetches_item *delivered;
    // bytes of all pieces in the window, and of taken pieces that the hub has not reported to the
    // link
    uint32_t window_bytes, taken;
    size_t held; // bytes of frames that wait behind pieces
};

// Begins fetching from the window that `description` describes. Fails like wire_bulk_row.meet.
int wire_fetches_begin(struct wire_fetches *f, struct wire_bulk *bulk, struct str description,
                       const uint8_t key[WIRE_KEY_BYTES], struct error *e);
void wire_fetches_end(struct wire_fetches *f);

// Adds a new piece of the window, and fetches it unless the bulk is broken. Returns 0, -EBADMSG if
// the window cannot hold the piece, or -ENOMEM.
int wire_fetches_laid(struct wire_fetches *f, const struct wire_header *h,
                      const struct wire_laid *laid);

// Keeps a frame that must not overtake pieces. If there are no pieces, *kept is false. Returns 0,
// -ENOBUFS if frames exceed FETCHES_HELD_MAX, or -ENOMEM.
int wire_fetches_hold(struct wire_fetches *f, const struct wire_header *h, struct str payload,
                      bool *kept);

// Returns the next complete item, which is valid until the next call. A piece has the type PART.
// Returns false if no item is complete.
bool wire_fetches_next(struct wire_fetches *f, struct wire_header *h, struct str *payload);

// Returns the number of bytes of the window that the link may use again, and counts them as
// reported. Small numbers are reported only if `whole` is true.
uint32_t wire_fetches_taken(struct wire_fetches *f, bool whole);

// Stops fetching for good.
void wire_fetches_break(struct wire_fetches *f, const char *why);
// Call it after the hub has reported the taken bytes and the broken bulk to the link. The link then
// sends all other pieces again, also those that the hub has fetched. With `trial`, the oldest piece
// is the trial piece, which the link does not send again.
void wire_fetches_refill(struct wire_fetches *f, bool trial);
// Fills the oldest missing piece from a frame. Returns 0, -EBADMSG if the frame does not match the
// piece, or -ENOMEM.
int wire_fetches_again(struct wire_fetches *f, const struct wire_header *h, struct str payload);

#endif
