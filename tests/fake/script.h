// script.h - the common part of the fake NVML, ROCm SMI and Level Zero. A script of text lines
// controls the GPUs:
//
//   gpus 4                 begins a new machine with 4 GPUs
//   init 8                 the start fails with this result
//   set 3 power 412e6      GPU 3 (or * for all) returns this value from now on, in the library's
//                          unit
//   fail 3 power 2         calls for the power of GPU 3 fail with this result, or succeed with 0;
//                          `all` instead of a name means every call
//   block 3 / free 3       every call for GPU 3 waits from now on / returns
//   # …                    a comment
//
// A test that has loaded the library passes the lines to the exported fake_line.
#ifndef SONDE_TESTS_FAKE_SCRIPT_H
#define SONDE_TESTS_FAKE_SCRIPT_H

#include <stdbool.h>

enum { FAKE_GPUS_MAX = 64, FAKE_KEYS_MAX = 32, FAKE_INIT = -1 };

typedef bool (*fake_line_function)(const char *line); // returns false if the line is unknown
typedef bool (*fake_blocked_function)(unsigned gpu);  // true while a call for the GPU waits

// ---- for the library ----

// The keys of a library with their initial values. The last entry is {NULL}.
struct fake_key {
    const char *name;
    double value;
};
extern const struct fake_key fake_keys[];

// Functions for a library's own lines, which are called with the lock held. Each may be NULL. They
// return false if a line is unknown.
struct fake_more {
    void (*begin)(void); // begins a new machine
    bool (*machine)(const char *verb, const char *word);
    bool (*gpu)(unsigned gpu, const char *verb, const char *word);
};
extern const struct fake_more fake_more;

unsigned fake_gpu_count(void);
int fake_init_result(void);

// Begins a call for a GPU: waits while the GPU is blocked, and takes the lock. Returns the result
// with which the call fails, or 0.
int fake_enter(unsigned gpu, int key);
int fake_leave(int result); // releases the lock, and returns `result`
// These must be called between fake_enter() and fake_leave().
double *fake_value(unsigned gpu, int key);
int fake_fails(unsigned gpu, int key);

// Does all of these steps for one value.
int fake_ask(unsigned gpu, int key, double *value);

// Adds `step` to the number at a place of a GPU, which is 0 at first, and returns the sum.
double fake_count(unsigned gpu, int place, double step);

// These take the lock, wait for a line that may have changed something, and report such a line.
void fake_lock(void);
void fake_wait(void);
void fake_changed(void);
bool fake_apply(const char *line); // is like fake_line; the caller holds the lock

#endif
