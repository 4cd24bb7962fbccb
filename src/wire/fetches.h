// fetches.h - a hub's end of one node's window: pieces that are being fetched, and the frames
// behind them, in the order in which they came.
//
//   next ◀─ [PART, 16 KiB of a question] ◀─ [END of it] ◀─ [piece, being fetched] ◀─ …
//
// A piece that cannot be fetched, or is not what its mac says, breaks the way for good: whatever of
// the pieces was not taken yet is sent again over the connection (wire_fetches_again), so nothing
// of an answer is lost. Memory: WIRE_WINDOW_BYTES of pieces and FETCHES_HELD_MAX of frames behind
// them.
#ifndef SONDE_WIRE_FETCHES_H
#define SONDE_WIRE_FETCHES_H

#include "wire/messages.h"

enum { FETCHES_HELD_MAX = 8 << 20 };

struct fetches_item;

struct wire_fetches {
    struct wire_bulk *bulk;
    struct wire_bulk_peer *peer;
    const uint8_t *key; // of the pieces' macs
    // Something may have changed: wire_fetches_next, and `broken`.
    void (*news)(void *user);
    void *user;
    bool broken;
    char why[128];
    struct fetches_item *first, **last, *given;
    // bytes of pieces that were not taken; that were, and of which the link was not told
    uint32_t lying, taken;
    size_t held; // bytes of frames behind pieces
};

// `description` is of the link's window. As wire_bulk_row.meet.
int wire_fetches_begin(struct wire_fetches *f, struct wire_bulk *bulk, struct str description,
                       const uint8_t *key, struct error *e);
void wire_fetches_end(struct wire_fetches *f);

// A piece lies there: it is fetched unless the way is broken. -EBADMSG: there cannot be so many;
// -ENOMEM.
int wire_fetches_laid(struct wire_fetches *f, const struct wire_header *h,
                      const struct wire_laid *laid);

// A frame that must not overtake pieces; not kept (false in *kept) when there are none. -ENOBUFS:
// FETCHES_HELD_MAX; -ENOMEM.
int wire_fetches_hold(struct wire_fetches *f, const struct wire_header *h, struct str payload,
                      bool *kept);

// The next that is whole; a piece is a PART. Valid until the next call. False: there is none (yet).
bool wire_fetches_next(struct wire_fetches *f, struct wire_header *h, struct str *payload);

// How many bytes of the window the link may use again. `whole`: however few.
uint32_t wire_fetches_taken(struct wire_fetches *f, bool whole);

// No more fetching.
void wire_fetches_break(struct wire_fetches *f, const char *why);
// The link is told how much was taken, and that the way is broken: all other pieces come again,
// also those that had been fetched. `trial`: the first is none.
void wire_fetches_refill(struct wire_fetches *f, bool trial);
// The oldest of them. -EBADMSG: that is not what is missing; -ENOMEM.
int wire_fetches_again(struct wire_fetches *f, const struct wire_header *h, struct str payload);

#endif
