// drain.h - makes the agent of this node store all data that programs have emitted so far, before a
// question is answered.
//
//   client                                 agent (src/agent/connections.c)
//     │── struct drain_request ─────────────▶│ reads all rings up to now; with DRAIN_CELLS, also
//     │                                      │ samples the cells of the client's process
//     │◀───────── u64, the request's number ─│ all of it is in the store
//     │ opens a snapshot of the agent's file
//
// So a point is readable as soon as the emitting call has returned: the next question makes the
// agent read the rings. Programs that emit pay nothing for it. A round trip costs the agent one
// reading of the rings' heads (3,200 instructions for ten programs), and it costs the client two
// system calls, 520 instructions and a wait. Three rules bound this cost:
//
// - Questions of one process share a request (struct drainer). A question that arrives while a
//   request is under way waits for the next one, because the agent may have read the rings already.
//   So N questions at a time cost at most two requests.
// - After a requested drain the agent rests three times as long as the drain took (at most 10 ms),
//   so that questions take at most a quarter of its time. All requests that arrive meanwhile share
//   the next drain.
// - Questions about the past (drain_reaches) and about recordings send no request.
//
// An agent that has stalled delays one question of each process, by DRAIN_WAIT_MS. Until it has
// answered that request, all further questions are answered at once from the file as it is, and
// counted as late. The wait is long, because it happens only once, and because an agent on a busy
// machine may not run for tens of milliseconds.
#ifndef SONDE_WIRE_DRAIN_H
#define SONDE_WIRE_DRAIN_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

// "\x05drain\x1a\n": no HELLO and no line of a text protocol begins with it
#define DRAIN_MAGIC UINT64_C(0x0a1a6e6961726405)

enum {
    // flag: also sample the cells of the client's process, or of its nearest ancestor that emits
    DRAIN_CELLS = 1,
    DRAIN_WAIT_MS = 500,
    DRAIN_PAST_MS = 1000,
};

struct drain_request {
    uint64_t magic;
    uint64_t flags;  // unknown flags are ignored
    uint64_t number; // number of this request; higher than earlier numbers on the same connection
};

// True if a question about times up to until_ns is about the present: until_ns is at most
// DRAIN_PAST_MS ago.
bool drain_reaches(int64_t until_ns);

enum { DRAIN_SOCKET_MAX = 4096 };

// Finds the socket of the agent that writes `recording`, a file or a folder. Returns false if the
// recording is not in the folder of a job.
bool drain_find_socket(const char *recording, char out[DRAIN_SOCKET_MAX]);

// ---- one connection ----
//
// One thread at a time may use a line. It continues to work in a child after fork().

struct drain_line;

int drain_line_create(const char *socket_path, unsigned flags, struct drain_line **out);
void drain_line_destroy(struct drain_line *l); // NULL is allowed

// Connects if necessary, sends a request, and waits for the response. Returns 0 if all points that
// were emitted before the call are in the store; -ETIMEDOUT if the agent has not answered this
// request or an earlier one in time; another negative errno if no agent runs.
int drain_line_ask(struct drain_line *l);

// ---- for all threads of a process ----

struct drainer;

int drainer_create(const char *socket_path, unsigned flags, struct drainer **out, struct error *e);
void drainer_destroy(struct drainer *d); // NULL is allowed; no request may wait

// Like drain_line_ask, but threads share requests. If d is NULL, no data are live, and it returns
// 0.
int drainer_wait(struct drainer *d);

struct drainer_stats {
    uint64_t waiting;   // questions that wait now
    uint64_t questions; // questions that have waited
    uint64_t requests;  // requests to the agent
    uint64_t late;      // questions that were answered without the newest points
};
void drainer_get_stats(struct drainer *d, struct drainer_stats *out);

#endif
