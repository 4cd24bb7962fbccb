// asking.h - a question in flight, in the loop's thread. hub_ask stands on it, and relays.
#ifndef SONDE_WIRE_ASKING_H
#define SONDE_WIRE_ASKING_H

#include "wire/hub.h"

struct asking;

struct asking_events {
    void (*record)(void *user, struct str host, struct str record);  // valid during the call
    void (*missing)(void *user, const struct wire_missing *missing); // likewise
    // all have answered or are missing
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

// Asks all nodes that are connected. `missing` is called for the others before it returns; `done`
// is not, also when *left, the number of those asked, is 0. -ENOMEM.
int asking_begin(struct hub *h, const struct asking_options *o, struct asking **out, size_t *left);

// While paused nodes get no more credit.
void asking_pause(struct asking *a, bool paused);

// Tells those that have not answered to stop, and names them with `reason`. Frees a; no event comes
// after it. Not to be called in an event.
void asking_end(struct asking *a, enum wire_reason reason);

#endif
