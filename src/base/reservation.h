// reservation.h - lets a caller end long work and limit its memory.
//
// Several parts of a request take memory at the same time: the node's own answer, the merge of all
// answers, the growing list. Each part has a reservation of its own, and the watch adds up their
// bytes.
#ifndef SONDE_BASE_RESERVATION_H
#define SONDE_BASE_RESERVATION_H

#include "base/error.h"

#include <stddef.h>

// `look` and `hold` return 0, or a negative errno with the reason; the work then fails with this
// errno.
struct work_watch {
    int (*look)(void *user, struct error *e); // called between pieces of work, some µs apart
    int (*hold)(void *user, size_t bytes, struct error *e); // the work needs this many bytes more
    void (*release)(void *user, size_t bytes);              // the work needs this many bytes less
    void *user;
};

struct reservation {
    const struct work_watch *watch; // NULL: no accounting
    size_t bytes;
};

// Grows to a total of `bytes`; no effect if it is already larger. Returns the watch's result; after
// a failure the reservation is as before.
int reservation_grow(struct reservation *r, size_t bytes, struct error *e);

// Shrinks to a total of `bytes`; no effect if it is already smaller.
void reservation_shrink(struct reservation *r, size_t bytes);

#endif
