// questions.h - what hub and link need of the layer that knows the questions (src/ask). To hub and
// link, a question is a number, and requests, records and views are not looked into.
#ifndef SONDE_WIRE_QUESTIONS_H
#define SONDE_WIRE_QUESTIONS_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/reservation.h"
#include "wire/held.h"

struct store_snapshot;
struct store_reader;
struct store_label;

// What a node answers from, at one moment: snapshots of its files. labels[i] is what all series of
// stores[i] carry beside their own (an empty key: nothing; NULL: nothing at all).
struct wire_view {
    struct store_snapshot *const *stores;
    struct store_reader *const *readers; // of each store
    const struct store_label *labels;
    size_t count;
    void *user; // the source's own
};

struct wire_source {
    // Opens a view for one question, or to look what there is; called in the loop's thread. Several
    // may be open at a time. A negative errno: e says why there is none.
    int (*open)(void *user, struct wire_view *out, struct error *e);
    void (*close)(void *user, struct wire_view *view);
    void *user;
};

struct wire_about;  // which hosts a request is about
struct wire_answer; // an answer in the making
struct wire_gather; // the answers of several nodes, being merged

// The questions, as functions. Requests must outlive what is made of them.
struct wire_questions {
    // Whether there is such a question. *merged: relays merge the answers of their children with
    // their own; else they pass them on.
    bool (*known)(unsigned question, bool *merged);
    // The end of the times that a request is about; INT64_MAX: now.
    int64_t (*until)(unsigned question, struct str request);
    // The request without what only nodes need for which `wants` says false. -EBADMSG.
    int (*narrow)(unsigned question, struct str request, bool (*wants)(void *user, struct str host),
                  void *user, struct buf *out);

    // NULL: all nodes are to be asked.
    struct wire_about *(*about)(unsigned question, struct str request);
    void (*about_end)(struct wire_about *about);
    // Whether a node of that name, which holds these hosts' series, is to be asked.
    bool (*concerns)(const struct wire_about *about, struct str node, const struct wire_held *held);

    // Two views of one identity hold series of the same hosts; never 0.
    uint64_t (*identity)(const struct wire_view *view);
    // Adds the hosts whose series a view holds, but for the node itself.
    void (*hosts)(const struct wire_view *view, struct str own, struct wire_held *held);

    // View and host must outlive the answer. After a failure there is none.
    int (*answer)(struct wire_answer **out, unsigned question, struct str request,
                  const struct wire_view *view, struct str host, int64_t deadline_ns,
                  const struct work_watch *watch, struct error *e);
    // The next record, behind what is in *out: 1; 0: there are no more; or a negative errno in
    // words.
    int (*answer_step)(struct wire_answer *answer, struct buf *out, struct error *e);
    void (*answer_end)(struct wire_answer *answer); // NULL: does nothing

    // Of a question that is merged. After a failure there is none.
    int (*gather)(struct wire_gather **out, unsigned question, struct str request,
                  const struct work_watch *watch, struct error *e);
    // -EBADMSG: that record is damaged, and was left out; the gather can go on.
    int (*gather_take)(struct wire_gather *gather, struct str record, struct error *e);
    // as answer_step
    int (*gather_step)(struct wire_gather *gather, struct buf *out, struct error *e);
    // NULL: does nothing
    void (*gather_end)(struct wire_gather *gather);
};

#endif
