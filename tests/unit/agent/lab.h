// lab.h - a whole agent in a child process, in a folder of its own, with real sockets.
#ifndef SONDE_TESTS_AGENT_LAB_H
#define SONDE_TESTS_AGENT_LAB_H

#include "agent/agent.h"
#include "unit/test.h"

#include <sys/types.h>

enum { LAB_VALUES_MAX = 65536, LAB_PATH_MAX = 128 };

struct lab {
    char folder[64];
    struct agent_options options; // set them before lab_start
    uint64_t file_limit_bytes;    // limit of a file's size, like a full disk; 0 = no limit
    pid_t pid;
    int control;                    // our end
    char said[ERROR_TEXT_MAX + 16]; // what the agent wrote to the control descriptor
};

void lab_make(struct lab *lab); // with level 1 and a rate of 20 Hz
void lab_free(struct lab *lab);

// Returns true once the agent reports that it is ready.
bool lab_start(struct lab *lab);

// Makes a file of `size` zero bytes in the lab's folder, which the test and its programs share, and
// maps it; `path` receives its path.
void *lab_share(const struct lab *lab, size_t size, char path[LAB_PATH_MAX]);
// Maps such a file in a program; exits with code 6 on failure.
void *lab_shared(const char *path, size_t size);

// Starts the agent without waiting for its first line.
void lab_fork(struct lab *lab);

// Ends the agent with a signal or, with 0, by closing the control descriptor. Returns its exit
// code, or minus the signal that killed it.
int lab_end(struct lab *lab, int signal_number);

// Stops the agent with SIGSTOP and returns once it stands still.
void lab_stop(struct lab *lab);

int lab_connect(const struct lab *lab);
// Sends text, shuts down the sending direction, and returns everything received until the end.
const char *lab_put(const struct lab *lab, const char *text);

// Returns the number of points of the series in the file, live or not; *last (may be NULL) is the
// last value. `series`: "loss{host=lab,rank=3}", tags sorted.
size_t lab_points(const struct lab *lab, const char *series, double *last);
// Waits up to ten seconds for this number of points.
void lab_await_points(const struct lab *lab, const char *series, size_t count);
// lab_sum returns the sum of the series' values; lab_distinct counts the different whole numbers
// below LAB_VALUES_MAX among them.
double lab_sum(const struct lab *lab, const char *series);
size_t lab_distinct(const struct lab *lab, const char *series);
void lab_await_distinct(const struct lab *lab, const char *series, size_t count);

// Runs this test program again as an emitter: it emits `points` points of "emitted", then writes a
// byte to the returned pipe, then (hold) lives until its standard input ends. *in (may be NULL) is
// the write end of that input.
pid_t lab_emitter(const struct lab *lab, size_t points, int *out, int *in);
// The emitting program. Returns its exit code.
int lab_emit(const char *points);

#endif
