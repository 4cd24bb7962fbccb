// pending_question.h - a question in flight, in the loop's thread. hub_ask.c and relays use it.
#ifndef SONDE_WIRE_PENDING_QUESTION_H
#define SONDE_WIRE_PENDING_QUESTION_H

#include "wire/hub.h"

struct pending_question;

struct pending_question_events {
    // the record is valid during the call
    void (*record)(void *user, struct str host, struct str record);
    void (*missing)(void *user, const struct wire_missing *missing); // valid during the call
    // every node has answered or is missing
    void (*done)(void *user);
};

struct pending_question_options {
    unsigned question;
    struct str request;
    const struct str *hosts; // as in struct hub_ask
    size_t host_count;
    uint32_t remaining_ms;
    struct pending_question_events events;
    void *user;
};

// Sends the question to all connected nodes. Calls `missing` for the other nodes before it returns.
// Never calls `done` itself, even if *left, the number of asked nodes, is 0. Returns 0 or -ENOMEM.
int pending_question_begin(struct hub *h, const struct pending_question_options *o,
                           struct pending_question **out, size_t *left);

// While paused, nodes get no more credit.
void pending_question_pause(struct pending_question *a, bool paused);

// Cancels the question at nodes that have not answered, and names them as missing with `reason`.
// Frees a; no event follows. Must not be called from an event.
void pending_question_end(struct pending_question *a, enum wire_reason reason);

#endif
