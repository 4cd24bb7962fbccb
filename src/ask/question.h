// question.h - what can be asked of a node: one table; and answering, apart from any connection.
//
// An answer is a stream of records, made one after the other by ask_answer_step. What a record
// holds is its question's affair (query_wire.h, lists_wire.h, …).
#ifndef SONDE_ASK_QUESTION_H
#define SONDE_ASK_QUESTION_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/reservation.h"
#include "query/query.h"
#include "store/read.h"
#include "wire/questions.h"

enum ask_question {
    ASK_QUERY,  // a plan; partial results
    ASK_NAMES,  // suggestions
    ASK_SERIES, // definitions of series, and their latest points
    ASK_EVENTS, // spans and annotations
    ASK_STATUS, // figures of the node's files
    ASK_COPY,   // all that they hold
    ASK_RECENT, // points of the last moments
    ASK_QUESTION_COUNT
};

struct wire_answer {
    const struct wire_view *view;
    struct str host;                // the node's name
    int64_t deadline_ns;            // CLOCK_MONOTONIC
    const struct work_watch *watch; // NULL: nobody counts the memory
    struct reservation reservation; // of `arena` and what ask_answer_hold has named
    struct arena arena;             // as long as the answer; at most ASK_ANSWER_MEMORY
    void *state;                    // the question's, in `arena`
    const struct ask_question_row *row;
};

enum { ASK_ANSWER_MEMORY = 256 << 20 };

struct wire_about;

struct ask_question_row {
    const char *name;
    // relays merge the answers of their children with their own; else they pass them on
    bool merged;
    // Reads the request. -EBADMSG: it is none; or a failure in words.
    int (*begin)(struct wire_answer *a, struct str request, struct error *e);
    // The next record, behind what is in *out: 1; 0: there are no more; or a negative errno in
    // words.
    int (*step)(struct wire_answer *a, struct buf *out, struct error *e);
    void (*end)(struct wire_answer *a); // also after a failed begin; may be NULL
    // Which hosts a request is about (about.h). NULL: everybody, always. A negative errno: it is
    // none.
    int (*about)(struct wire_about *about, struct str request);
    // The request without what only nodes need for which `wants` says false. -EBADMSG. NULL: all
    // need all of it.
    int (*narrow)(struct str request, bool (*wants)(void *user, struct str host), void *user,
                  struct buf *out);
    // The end of the times that a request is about. NULL: all are about the present.
    int64_t (*until)(struct str request);
};
const struct ask_question_row *ask_question_row(unsigned question); // NULL: no such question

// INT64_MAX: now.
int64_t ask_question_until(unsigned question, struct str request);

// View and host must outlive the answer, and the request: what is read of it are views.
// ask_answer_end also after a failure.
int ask_answer_begin(struct wire_answer *a, unsigned question, struct str request,
                     const struct wire_view *view, struct str host, int64_t deadline_ns,
                     const struct work_watch *watch, struct error *e);
// The answer takes `bytes` beside its arena now. Returns what the watch returns.
int ask_answer_hold(struct wire_answer *a, size_t bytes, struct error *e);
int ask_answer_step(struct wire_answer *a, struct buf *out, struct error *e);
void ask_answer_end(struct wire_answer *a);

#endif
