// questions.h - the interface between hub and link and the layer that defines the questions
// (src/ask). To hub and link a question is a number; they do not interpret requests, records and
// views.
#ifndef SONDE_WIRE_QUESTIONS_H
#define SONDE_WIRE_QUESTIONS_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/reservation.h"
#include "wire/host_set.h"

struct store_snapshot;
struct store_reader;
struct store_label;

// The data that a node answers from: snapshots of its files at one moment. All series of stores[i]
// have labels[i] in addition to their own labels (an empty key: no label; labels NULL: no file adds
// one).
struct wire_view {
    struct store_snapshot *const *stores;
    struct store_reader *const *readers; // the reader of each store
    const struct store_label *labels;
    size_t count;
    void *user; // private to the source
};

struct wire_source {
    // Opens a view for one question, or for listing the hosts. Called in the loop's thread. Several
    // views may be open at a time. Returns 0, or a negative errno with the reason in e.
    int (*open)(void *user, struct wire_view *out, struct error *e);
    void (*close)(void *user, struct wire_view *view);
    void *user;
};

struct wire_host_filter; // the hosts that a request is about
struct wire_answer;      // an answer in progress
struct wire_gather;      // a merge of several nodes' answers

// The questions, as functions. A request must outlive the objects made from it.
struct wire_questions {
    // True if the question exists. *merged: relays merge the answers of their children with their
    // own; otherwise they forward them.
    bool (*known)(unsigned question, bool *merged);
    // Returns the end of a request's time range; INT64_MAX: now.
    int64_t (*until)(unsigned question, struct str request);
    // Reduces a request: removes the parts about nodes for which `is_receiver` returns false.
    // Returns 0, or -EBADMSG for a malformed request.
    int (*narrow)(unsigned question, struct str request,
                  bool (*is_receiver)(void *user, struct str host), void *user, struct buf *out);

    // Finds the hosts that a request is about. NULL: ask all nodes.
    struct wire_host_filter *(*host_filter)(unsigned question, struct str request);
    void (*host_filter_end)(struct wire_host_filter *filter);
    // True if a node of this name, which holds these hosts' series, must be asked.
    bool (*concerns)(const struct wire_host_filter *filter, struct str node,
                     const struct wire_host_set *held);

    // Returns a number that is never 0. Two views with the same number hold series of the same
    // hosts.
    uint64_t (*identity)(const struct wire_view *view);
    // Adds the hosts whose series a view holds, except the node's own name.
    void (*hosts)(const struct wire_view *view, struct str own, struct wire_host_set *held);

    // Begins an answer. View and host must outlive it. After a failure *out is not set.
    int (*answer)(struct wire_answer **out, unsigned question, struct str request,
                  const struct wire_view *view, struct str host, int64_t deadline_ns,
                  const struct work_watch *watch, struct error *e);
    // Appends the next record to *out and returns 1; returns 0 at the end, or a negative errno with
    // a message in e.
    int (*answer_step)(struct wire_answer *answer, struct buf *out, struct error *e);
    void (*answer_end)(struct wire_answer *answer); // NULL is allowed

    // Begins to merge answers, for a question with `merged`. After a failure *out is not set.
    int (*gather)(struct wire_gather **out, unsigned question, struct str request,
                  const struct work_watch *watch, struct error *e);
    // Merges a record. Returns -EBADMSG for a damaged record, and leaves it out; the caller may go
    // on.
    int (*gather_take)(struct wire_gather *gather, struct str record, struct error *e);
    // like answer_step
    int (*gather_step)(struct wire_gather *gather, struct buf *out, struct error *e);
    // NULL is allowed
    void (*gather_end)(struct wire_gather *gather);
};

#endif
