// answers.h - the answers of a link: one for each unfinished ASK of its parent.
//
//   refresh ─▶ own answer ──┬─▶ gather (a merged question at a relay) ─┐
//   children ───────────────┤                                          ▼
//                           └──────────────────────────────────────▶ out ─▶ PART …, MISSING, END
//
// Each answer is made in slices of the loop's work. Without credit, or while the connection has
// WIRE_LINK_QUEUED_MAX unsent bytes, an answer holds at most OUT_MAX bytes of records.
//
// All functions but answers_create and answers_destroy are called in the loop's thread.
#ifndef SONDE_WIRE_ANSWERS_H
#define SONDE_WIRE_ANSWERS_H

#include "wire/host_reports.h"
#include "wire/hub.h"
#include "wire/refresh.h"

enum {
    // limit of unsent bytes on the connection; answers pause at it
    WIRE_LINK_QUEUED_MAX = 1 << 20,
};

// All pointers outlive the answers.
struct answers_options {
    struct wire_loop *loop;
    const struct wire_questions *questions;
    struct str host; // the node's own name
    const struct wire_source *source;
    struct wire_host_reports *host_reports; // gets new hosts before an answer about them is made
    struct wire_refresher *refresher;       // NULL: files need no refresh
    struct hub *children;                   // NULL: the node is not a relay
    struct memory_account *memory;          // for all answers together; NULL: no limit
};

struct answers_stats {
    uint64_t questions, cancelled;
    int running;
};

struct answers;

// Returns NULL if memory is exhausted.
struct answers *answers_create(const struct answers_options *options);
void answers_destroy(struct answers *a); // call it after answers_stop, or if the loop never ran

void answers_start(struct answers *a);
void answers_stop(struct answers *a); // call it after answers_disconnected

// The parent accepts answers on this session.
void answers_connected(struct answers *a, struct wire_session *session);
// Called when the connection has ended; its answers end, too. Idempotent.
void answers_disconnected(struct answers *a);

// Handles a frame of the parent. Returns false if the frame breaks the protocol.
bool answers_ask(struct answers *a, uint32_t id, struct str payload);
bool answers_credit(struct answers *a, uint32_t id, struct str payload);
void answers_cancel(struct answers *a, uint32_t id);

// Called when the connection has room again.
void answers_resume(struct answers *a);

struct answers_stats answers_stats(const struct answers *a);

#endif
