// lab.h - a whole agent in a child process, in a folder of its own, with real sockets.
#ifndef SONDE_TESTS_AGENT_LAB_H
#define SONDE_TESTS_AGENT_LAB_H

#include "agent/agent.h"
#include "unit/test.h"

#include <sys/types.h>

enum { LAB_VALUES_MAX = 65536, LAB_PATH_MAX = 128 };

struct lab {
    char folder[64];
    struct agent_options options; // change before lab_start
    uint64_t file_limit_bytes;    // no file may grow past it: a full disk; 0 = no limit
    pid_t pid;
    int control;                    // our end
    char said[ERROR_TEXT_MAX + 16]; // what the agent wrote to it
};

void lab_make(struct lab *lab); // level 1, a rate of 20 Hz
void lab_free(struct lab *lab);

// True when it says that it is ready.
bool lab_start(struct lab *lab);

// Makes a file of `size` zero bytes in the lab's folder for test and programs to share, and maps
// it; the path is put into `path`.
void *lab_share(const struct lab *lab, size_t size, char path[LAB_PATH_MAX]);
// Maps such a file, in a program; exits with 6 when it cannot.
void *lab_shared(const char *path, size_t size);

// Without waiting for what it says.
void lab_fork(struct lab *lab);

// Ends it: with a signal, or (0) by closing the control descriptor. Its exit code, or minus the
// signal that it died of.
int lab_end(struct lab *lab, int signal_number);

int lab_connect(const struct lab *lab);
// Sends text, closes that half, reads to the end: what came back.
const char *lab_put(const struct lab *lab, const char *text);

// How many points the series has in the file, live or not; the last of them in *last (may be NULL).
// `series`: "loss{host=lab,rank=3}", tags sorted.
size_t lab_points(const struct lab *lab, const char *series, double *last);
// Waits until it has that many, for ten seconds at most.
void lab_await_points(const struct lab *lab, const char *series, size_t count);
// Sum of its values; how many different ones it has, of the whole numbers below LAB_VALUES_MAX.
double lab_sum(const struct lab *lab, const char *series);
size_t lab_distinct(const struct lab *lab, const char *series);
void lab_await_distinct(const struct lab *lab, const char *series, size_t count);

// Runs this test program again as one that emits: `points` points of "emitted", then one byte on
// the pipe that is returned, then (hold) it lives until its standard input ends. *in (may be NULL)
// is the end of that input to close.
pid_t lab_emitter(const struct lab *lab, size_t points, int *out, int *in);
// What the emitting program does. Returns its exit code.
int lab_emit(const char *points);

#endif
