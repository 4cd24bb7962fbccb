// workers.h - the threads that answer requests, so that the threads of the HTTP library never wait
// for one.
//
//   HTTP library ── suspend, workers_put ──▶ queue ──▶ a worker: job->run ──▶ resume, the answer is sent
//
// At most `at_once` requests run that are younger than `slow_after_ns`; older ones no longer count,
// so short requests go past long ones. There are `threads_max` threads, and at most `slow_max`
// requests may be slow: one more is ended (-EBUSY, limit slow_queries), so that threads are always
// left. The queue needs no bound of its own: each connection has one request under way, and the
// table of connections has one.
//
// A request whose client has hung up ends at its next check (-ECANCELED). The memory of all
// requests counts against one account: bodies while they arrive, the memory of queries, answers
// until they are sent. Past the account's limit a request ends (-EBUSY, limit total_memory_bytes).
// When no request has run for a while, the workers call `idle`, so that the process can free what
// it kept for the next request.
#ifndef SONDE_HTTP_WORKERS_H
#define SONDE_HTTP_WORKERS_H

#include "base/error.h"
#include "base/memory_account.h"
#include "base/reservation.h"

#include <stdint.h>

struct workers;

enum { WORKERS_IDLE_MAX = 2 };

struct job {
    void (*run)(void *user);   // in a worker
    void (*ended)(void *user); // likewise, behind it; the job may be gone when it returns
    void *user;
    int fd; // the client's socket; -1: none
    // The workers' own.
    struct workers *workers;
    struct job *next, *previous;
    int64_t began_ns, looked_ns;
    size_t body_bytes, query_bytes, answer_bytes;
    bool slow, judged;
    _Atomic bool refused;
    struct work_watch watch;
};

// What happens when no request has run for `after_ns`: `call` is called, once each time.
struct workers_idle {
    int64_t after_ns; // 0: none
    void (*call)(void *user);
};

struct workers_options {
    unsigned threads_max; // more than slow_max
    unsigned at_once, slow_max;
    int64_t slow_after_ns;
    struct memory_account *memory;
    struct workers_idle idle[WORKERS_IDLE_MAX]; // the earliest first
    // called after each request, when its memory is freed; may be NULL
    void (*eased)(void *user);
    void *user; // of all these
};

// Starts the first thread; others come when they are needed.
int workers_create(const struct workers_options *options, struct workers **out, struct error *e);

// Ends what runs at its next look, runs what is queued (each ends at its first look), waits for the
// threads.
void workers_stop(struct workers *w);
void workers_destroy(struct workers *w);

// Thread-safe. `job` and what it points to must live until it has ended and its memory is let go.
// False: the workers have stopped.
bool workers_put(struct workers *w, struct job *job);

// What the request that this thread is answering is to be told and asked; NULL outside of a worker.
const struct work_watch *workers_watch(void);

// The answer that this thread is making needs `bytes`, beside what its queries need. Does nothing
// outside of a worker. -EBUSY: the limit.
int workers_hold_answer(size_t bytes, struct error *e);

// Counts the part of the job's body that has arrived, or will. Before workers_put, any thread.
// -EBUSY: the limit.
int workers_hold_body(struct workers *w, struct job *job, size_t bytes, struct error *e);

// The job's queries have ended: only the body and the answer's `bytes` still count. Any thread.
void workers_let_go(struct job *job, size_t bytes);

// The answer is sent, or the job never ran: nothing of it counts any more.
void workers_let_all_go(struct job *job);

struct workers_counts {
    unsigned threads, running, slow, queued;
    size_t held_bytes;
    uint64_t answered, hung_up, refused_slow, refused_memory;
};
void workers_counts(struct workers *w, struct workers_counts *out);

#endif
