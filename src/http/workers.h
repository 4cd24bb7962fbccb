// workers.h - the threads that answer requests, so that the threads of the HTTP library never wait
// for an answer.
//
//   HTTP library ── suspend, workers_put ──▶ queue ──▶ a worker: job->run ──▶ resume: the library
//   sends the answer
//
// At most `at_once` requests run that are younger than `slow_after_ns`. Older requests do not
// count, so short requests overtake long ones. The pool has `threads_max` threads. At most
// `slow_max` requests may be slow; the next one that becomes slow ends (-EBUSY, limit
// slow_queries), so that threads are always free. The queue needs no limit of its own, because each
// connection has one pending request, and the table limits the connections.
//
// If its client has hung up, a request ends at its next check (-ECANCELED). The memory of all
// requests counts against one account: bodies while they arrive, the memory of queries, answers
// until they are sent. A request that would exceed the account's limit ends (-EBUSY, limit
// total_memory_bytes). When no request has run for a while, the workers call `idle`, so that the
// process can free its caches.
#ifndef SONDE_HTTP_WORKERS_H
#define SONDE_HTTP_WORKERS_H

#include "base/error.h"
#include "base/list.h"
#include "base/memory_account.h"
#include "base/reservation.h"

#include <stdint.h>

struct workers;

enum { WORKERS_IDLE_MAX = 2 };

struct job {
    void (*run)(void *user); // called in a worker
    // called in the worker after `run`; the job may be freed when it returns
    void (*ended)(void *user);
    void *user;
    int fd; // the client's socket; -1: none
    // For the workers only.
    struct workers *workers;
    struct list_link in_workers; // in the queue, then in the list of running jobs
    int64_t began_ns, looked_ns;
    size_t body_bytes, query_bytes, answer_bytes;
    bool slow, judged;
    _Atomic bool refused;
    struct work_watch watch;
};

// The workers call `call` once when no request has run for `after_ns`.
struct workers_idle {
    int64_t after_ns; // 0: none
    void (*call)(void *user);
};

struct workers_options {
    unsigned threads_max; // more than slow_max
    unsigned at_once, slow_max;
    int64_t slow_after_ns;
    struct memory_account *memory;
    // called once in the first thread; requests need not wait for it. May be NULL
    void (*begin)(void *user);
    struct workers_idle idle[WORKERS_IDLE_MAX]; // sorted by time, shortest first
    // called after each request, once its memory is freed; may be NULL
    void (*eased)(void *user);
    void *user; // the argument of all these callbacks
};

// Starts the first thread. Other threads start when they are needed.
int workers_create(const struct workers_options *options, struct workers **out, struct error *e);

// Ends running requests at their next check, runs queued ones (each ends at its first check), and
// waits for the threads.
void workers_stop(struct workers *w);
void workers_destroy(struct workers *w);

// Queues a job. Thread-safe. `job` and its data must live until it has ended and its memory is
// released. Returns false if the workers have stopped.
bool workers_put(struct workers *w, struct job *job);

// Returns the watch of the request that this thread answers, or NULL outside of a worker.
const struct work_watch *workers_watch(void);

// Accounts for `bytes` of the answer that this thread makes, in addition to the memory of its
// queries. Does nothing outside of a worker. Returns 0, or -EBUSY at the limit.
int workers_hold_answer(size_t bytes, struct error *e);

// Accounts for the part of the job's body that has arrived, or is announced. Any thread may call
// it, before workers_put. Returns 0, or -EBUSY at the limit.
int workers_hold_body(struct workers *w, struct job *job, size_t bytes, struct error *e);

// Call it when the job's queries have ended: only the body and the answer's `bytes` still count.
// Any thread may call it.
void workers_release_queries(struct job *job, size_t bytes);

// Call it when the answer is sent, or if the job never ran: none of its memory counts any more.
void workers_release_all(struct job *job);

struct workers_counts {
    unsigned threads, running, slow, queued;
    size_t held_bytes;
    uint64_t answered, hung_up, refused_slow, refused_memory;
};
void workers_counts(struct workers *w, struct workers_counts *out);

#endif
