// child.h - a child process that must not outlive its parent: the agent, the aggregator.
//
// It runs in a session of its own, so that Ctrl-C on the terminal does not reach it, and holds one
// end of a socket pair. It writes "ready …\n" there once it serves, or "error TEXT\n", and ends
// when the other end is closed. Whatever ends the parent, even kill -9, the kernel closes the
// parent's end.
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
    CHILD_LINE_MAX = 600, // bytes of its first line
    // bytes of a line once it is ready; longer ones are ignored
    CHILD_LATER_MAX = COLLECTOR_LINE_MAX,
    CHILD_CONTROL_FD = 3, // number of the child's end of the socket pair, in the child
    CHILD_HANDED_FD = 4,  // number of the first passed descriptor, in the child
    CHILD_HANDED_MAX = 3,
    CHILD_HIGH_FD = 16, // above all descriptor numbers that a child gets
    CHILD_ARGUMENTS_MAX = 48,
    CHILD_TELL_MS = 1000,
    CHILD_STEADY_S = 60, // a child that has lived this long counts as working
    // a child that ends sooner this many times in a row is not started again
    CHILD_EARLY_ENDS_MAX = 5,
};

enum child_state { CHILD_NONE, CHILD_STARTING, CHILD_READY, CHILD_GONE };

struct child {
    const char *what; // name for messages: "agent"
    enum child_state state;
    pid_t pid;
    int control;               // our end; -1 once closed
    bool stopping;             // we have closed it
    char line[CHILD_LINE_MAX]; // its first line so far, without the newline
    size_t line_size;
    bool first_line_complete; // the first line is complete
    struct buf later;         // beginning of the next line
    // called for each complete line of a ready child; NULL (as child_start leaves it): lines are
    // dropped
    void (*take)(void *user, const char *line);
    void *user;
    int status;         // wait status, when gone
    int64_t started_ns; // monotonic
    int early_ends;     // starts in a row that failed, or ended within CHILD_STEADY_S
};

// A command line that is built piece by piece. Texts are copied.
struct child_command {
    char *argv[CHILD_ARGUMENTS_MAX + 1];
    int argc;
    bool failed; // too many arguments, or no memory
    // Descriptors (from CHILD_HIGH_FD on) that the child gets as CHILD_HANDED_FD and the following
    // numbers; ours stay open.
    int handed[CHILD_HANDED_MAX];
    int handed_count;
};
// Passes our descriptor `fd` to the child; returns its number there.
int child_command_hand(struct child_command *c, int fd);
void child_command_add(struct child_command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void child_command_free(struct child_command *c);

// Runs this program again (/proc/self/exe) with the arguments; its standard input and output are
// /dev/null, and its standard error is ours. Signals are unblocked and have their default actions.
// The kernel sends it SIGTERM when this process dies. Returns 0 or a negative errno with a message;
// *c is STARTING or GONE. The caller zeroes *c before the first start; it keeps the history of
// starts from one to the next.
int child_start(struct child *c, const char *what, struct child_command *command, struct error *e);

// Reads the control socket; call it when that is readable. After "ready …" the state is READY, and
// `line` holds the rest ("ready 4242": "4242"); complete lines after it go to `take`. After "error
// …" or the end of the stream the control socket is closed, and `line` holds the message.
void child_read(struct child *c);

// Sends the child a line. Drops it if the child does not read for CHILD_TELL_MS.
void child_tell(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Whether the child has reported an error ("error …").
bool child_refused(const struct child *c);

// Asks the child to end. Idempotent.
void child_stop(struct child *c);

// Call it when the child has been reaped with this wait status. Kills all remaining processes of
// the child's session.
void child_reaped(struct child *c, int status);

// Whether to start the child again. Only ends in quick succession count, so a long job survives any
// number of ends that are far apart.
static inline bool child_is_worth_it(const struct child *c)
{
    return c->early_ends <= CHILD_EARLY_ENDS_MAX;
}

static inline bool child_runs(const struct child *c)
{
    return c->state == CHILD_STARTING || c->state == CHILD_READY;
}

// Writes "exit code 3", "signal 9 (Killed)".
void child_status_text(int status, char *out, size_t size);

#endif
