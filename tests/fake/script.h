// script.h - the common part of the fake NVML, ROCm SMI and Level Zero: GPUs that follow lines of
// text.
//
//   gpus 4                 begins a new machine
//   init 8                 the start fails with this result
//   set 3 power 412e6      GPU 3 (or * for all) returns this value from now on, in the library's
//                          unit
//   fail 3 power 2         its calls for power fail with this result, 0 = no longer;
//                          `all` instead of a name = every call
//   block 3 / free 3       every call for GPU 3 waits from now on / returns
//   # …                    a remark
//
// A test that has loaded the library passes the lines to the exported fake_line.
#ifndef SONDE_TESTS_FAKE_SCRIPT_H
#define SONDE_TESTS_FAKE_SCRIPT_H

#include <stdbool.h>

enum { FAKE_GPUS_MAX = 64, FAKE_KEYS_MAX = 32, FAKE_INIT = -1 };

typedef bool (*fake_line_function)(const char *line); // false if the line is none of the above
typedef bool (*fake_blocked_function)(unsigned gpu);  // true while a call for the GPU waits

// ---- for the library ----

// Its keys with their initial values; ends with {NULL}.
struct fake_key {
    const char *name;
    double value;
};
extern const struct fake_key fake_keys[];

// Further lines of a library. Called with the lock held; each may be NULL. False: an unknown line.
struct fake_more {
    void (*begin)(void); // a new machine
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
// Between the two calls.
double *fake_value(unsigned gpu, int key);
int fake_fails(unsigned gpu, int key);

// All of these steps for one value.
int fake_ask(unsigned gpu, int key, double *value);

// Adds `step` to a number that a GPU keeps for the caller, initially 0, and returns the sum.
double fake_count(unsigned gpu, int place, double step);

// The lock alone, and a wait for a line that may have changed something.
void fake_lock(void);
void fake_wait(void);
void fake_changed(void);
bool fake_apply(const char *line); // like fake_line, with the lock held

#endif
