// question.h - the table of all questions to a node, and their answers, independent of any
// connection.
//
// An answer is a stream of records, which ask_answer_step makes one after the other. The headers of
// the questions define their contents (query_wire.h, lists_wire.h, …).
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
    ASK_QUERY,  // a plan; the answer is partial results
    ASK_NAMES,  // suggestions
    ASK_SERIES, // definitions of series, and their latest points
    ASK_EVENTS, // spans and annotations
    ASK_STATUS, // state of the node's files
    ASK_COPY,   // all contents of the files
    ASK_RECENT, // points of the last seconds
    ASK_QUESTION_COUNT
};

struct wire_answer {
    const struct wire_view *view;
    struct str host;                // the node's name
    int64_t deadline_ns;            // CLOCK_MONOTONIC
    const struct work_watch *watch; // NULL: memory is not accounted
    struct reservation reservation; // for `arena` and the bytes of ask_answer_hold
    struct arena arena;             // freed with the answer; at most ASK_ANSWER_MEMORY
    void *state;                    // the question's own state, in `arena`
    const struct ask_question_row *row;
};

enum { ASK_ANSWER_MEMORY = 256 << 20 };

struct wire_host_filter;

struct ask_question_row {
    const char *name;
    // relays merge the answers of their children with their own; without it, they forward them
    bool merged;
    // Reads the request. Returns -EBADMSG if it is damaged, or another error with a message.
    int (*begin)(struct wire_answer *a, struct str request, struct error *e);
    // Appends the next record to *out. Returns 1, 0 after the last record, or a negative errno with
    // a message.
    int (*step)(struct wire_answer *a, struct buf *out, struct error *e);
    void (*end)(struct wire_answer *a); // also called after a failed begin; may be NULL
    // Finds the hosts that a request is about (host_filter.h). NULL: a request is about all hosts.
    // A negative errno: the request is invalid.
    int (*host_filter)(struct wire_host_filter *filter, struct str request);
    // Writes the request without the parts about nodes for which `is_receiver` returns false,
    // because no receiver of the request needs these parts. Returns -EBADMSG for a damaged request.
    // NULL: every node needs the complete request.
    int (*narrow)(struct str request, bool (*is_receiver)(void *user, struct str host), void *user,
                  struct buf *out);
    // Returns the end of the period that a request covers. NULL: every request is about the
    // present.
    int64_t (*until)(struct str request);
};
const struct ask_question_row *ask_question_row(unsigned question); // NULL: unknown question

// Returns INT64_MAX for a request about the present.
int64_t ask_question_until(unsigned question, struct str request);

// The view, host and request must outlive the answer, which holds views of the request. Call
// ask_answer_end also after a failure.
int ask_answer_begin(struct wire_answer *a, unsigned question, struct str request,
                     const struct wire_view *view, struct str host, int64_t deadline_ns,
                     const struct work_watch *watch, struct error *e);
// Accounts for `bytes` of the answer beside its arena. Returns the result of the watch.
int ask_answer_hold(struct wire_answer *a, size_t bytes, struct error *e);
int ask_answer_step(struct wire_answer *a, struct buf *out, struct error *e);
void ask_answer_end(struct wire_answer *a);

#endif
