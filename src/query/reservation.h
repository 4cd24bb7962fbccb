// reservation.h - the memory that one part of a request has reserved with the request's watch.
//
// A request has several parts that take memory at one time: the node's own answer, the merge of all
// answers, the list that grows. Each part has a reservation of its own, and the watch adds them up.
#ifndef SONDE_QUERY_RESERVATION_H
#define SONDE_QUERY_RESERVATION_H

#include "query/query.h"

struct query_reservation {
    const struct query_watch *watch; // NULL: nobody counts
    size_t bytes;
};

// Grows to `bytes` in all; fewer than before change nothing. Returns what the watch returns; after a
// failure the reservation is as before.
int query_reserve(struct query_reservation *r, size_t bytes, struct error *e);

// Shrinks to `bytes` in all; more than before change nothing.
void query_unreserve(struct query_reservation *r, size_t bytes);

#endif
