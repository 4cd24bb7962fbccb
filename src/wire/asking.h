// asking.h - a question in flight, in the loop's thread. hub_ask and relays use it.
#ifndef SONDE_WIRE_ASKING_H
#define SONDE_WIRE_ASKING_H

#include "wire/hub.h"

struct asking;

struct asking_events {
    void (*record)(void *user, struct str host, struct str record);  // valid during the call
    void (*missing)(void *user, const struct wire_missing *missing); // valid during the call
    // every node has answered or is missing
    void (*done)(void *user);
};

struct asking_options {
    unsigned question;
    struct str request;
    const struct str *hosts; // as in struct hub_ask
    size_t host_count;
    uint32_t remaining_ms;
    struct asking_events events;
    void *user;
};

// Asks all connected nodes. Calls `missing` for the others before it returns; never calls `done`,
// not even if *left, the number of asked nodes, is 0. Returns -ENOMEM on failure.
int asking_begin(struct hub *h, const struct asking_options *o, struct asking **out, size_t *left);

// While paused, nodes get no more credit.
void asking_pause(struct asking *a, bool paused);

// Cancels the question at nodes that have not answered, and names them as missing with `reason`.
// Frees a; no event follows. Must not be called within an event.
void asking_end(struct asking *a, enum wire_reason reason);

#endif
