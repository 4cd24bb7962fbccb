// child.h - a process of ours that must not outlive us: the agent, the aggregator.
//
// It runs in a session of its own, so that Ctrl-C on the terminal does not reach it, and holds one
// end of a socket pair. It writes "ready …\n" there once it serves, or "error TEXT\n", and ends
// when the other end is closed; the kernel closes ours however we end, kill -9 included.
//
//   STARTING ──"ready"──▶ READY ──control closed──▶ (finishes) ──▶ GONE
//       └────"error", exit, time-out──────────────────────────────▶ GONE
#ifndef SONDE_LAUNCH_CHILD_H
#define SONDE_LAUNCH_CHILD_H

#include "base/error.h"
#include "base/str.h"
#include "wire/collector_line.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CHILD_LINE_MAX = 600, // bytes of what it may say before its newline
    // bytes of a line that it says once it is ready; a longer one is left alone
    CHILD_LATER_MAX = COLLECTOR_LINE_MAX,
    CHILD_CONTROL_FD = 3, // the descriptor that it finds its end under
    CHILD_HANDED_FD = 4,  // the first of the descriptors that are handed to it
    CHILD_HANDED_MAX = 3,
    CHILD_HIGH_FD = 16, // above all of them
    CHILD_ARGUMENTS_MAX = 48,
    CHILD_TELL_MS = 1000,
    CHILD_STEADY_S = 60, // a child that has lived so long has worked
    // a child that ends sooner more often than this, one time after another, is given up
    CHILD_EARLY_ENDS_MAX = 5,
};

enum child_state { CHILD_NONE, CHILD_STARTING, CHILD_READY, CHILD_GONE };

struct child {
    const char *what; // "agent"
    enum child_state state;
    pid_t pid;
    int control;               // our end; -1 once closed
    bool stopping;             // we closed it
    char line[CHILD_LINE_MAX]; // what it has said so far, without the newline
    size_t line_size;
    bool said;        // the line is whole
    struct buf later; // of the line after it that is being said
    // who hears those; NULL (as child_start leaves it): nobody
    void (*take)(void *user, const char *line);
    void *user;
    int status;         // wait status, when gone
    int64_t started_ns; // monotonic
    int early_ends;     // starts one after another that failed, or ended within CHILD_STEADY_S
};

// What to run, put together piece by piece. Texts are copied.
struct child_command {
    char *argv[CHILD_ARGUMENTS_MAX + 1];
    int argc;
    bool failed; // too many, or no memory
    int handed
        // descriptors from CHILD_HIGH_FD on that it gets, as CHILD_HANDED_FD and behind it; ours
        // stay open
        [CHILD_HANDED_MAX];
    int handed_count;
};
// The number under which the child will find the descriptor `fd` of ours.
int child_command_hand(struct child_command *c, int fd);
void child_command_add(struct child_command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void child_command_free(struct child_command *c);

// Runs this program again (/proc/self/exe) with the arguments; its standard input and output are
// /dev/null, its standard error is ours, the signals are unblocked and at their defaults. It gets
// SIGTERM when we die. 0 or a negative errno with words; *c is STARTING or GONE. *c is zeroed
// before the first start, and knows of the starts before.
int child_start(struct child *c, const char *what, struct child_command *command, struct error *e);

// Reads what there is on the control socket. Call it when it is readable; the state goes to READY
// when "ready" was said. What stands behind it ("ready 4242": "4242") is in line; whole lines after
// it go to take. After "error …" or the end of the stream the control socket is closed; the words
// are in line.
void child_read(struct child *c);

// Says a line to it. One that does not read for CHILD_TELL_MS does not get it.
void child_tell(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Whether it said "error".
bool child_refused(const struct child *c);

// Asks it to end. Idempotent.
void child_stop(struct child *c);

// It has been reaped with this wait status. What it has started and left in its session is killed.
void child_reaped(struct child *c, int status);

// Whether it should be started once more: a long job outlives any number of ends that are far
// apart.
static inline bool child_is_worth_it(const struct child *c)
{
    return c->early_ends <= CHILD_EARLY_ENDS_MAX;
}

static inline bool child_runs(const struct child *c)
{
    return c->state == CHILD_STARTING || c->state == CHILD_READY;
}

// "exit code 3", "signal 9 (Killed)".
void child_status_text(int status, char *out, size_t size);

#endif
