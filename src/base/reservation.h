// reservation.h - the caller of long work can end it, and bounds its memory.
//
// A request has several parts that take memory at one time: the node's own answer, the merge of all
// answers, the list that grows. Each part has a reservation of its own, and the watch adds them up.
#ifndef SONDE_BASE_RESERVATION_H
#define SONDE_BASE_RESERVATION_H

#include "base/error.h"

#include <stddef.h>

// `look` and `hold` return 0, or a negative errno and the reason, with which the work then fails.
struct work_watch {
    int (*look)(void *user, struct error *e); // between pieces of work, some µs apart
    int (*hold)(void *user, size_t bytes, struct error *e); // the work uses so many bytes more
    void (*release)(void *user, size_t bytes);              // it uses so many fewer
    void *user;
};

struct reservation {
    const struct work_watch *watch; // NULL: nobody counts
    size_t bytes;
};

// Grows to `bytes` in all; fewer than before change nothing. Returns what the watch returns; after
// a failure the reservation is as before.
int reservation_grow(struct reservation *r, size_t bytes, struct error *e);

// Shrinks to `bytes` in all; more than before change nothing.
void reservation_shrink(struct reservation *r, size_t bytes);

#endif
