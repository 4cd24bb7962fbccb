// fake_gpus.h - a collector of the GPUs that the fake NVML simulates.
#ifndef SONDE_TEST_COLLECT_FAKE_GPUS_H
#define SONDE_TEST_COLLECT_FAKE_GPUS_H

#include "collect/collect.h"
#include "fake/nvml.h"
#include "tree.h"
#include "unit/test.h"

static const int64_t SECOND = 1000000000;

static const double GIB = 1 << 30;

static const double PATIENT_RATE_S = 4;

// The list of sources of later collectors; NULL = all.
extern const char *gpu_sources;

extern struct fake_functions {
    fake_line_function line;
    fake_blocked_function blocked;
    fake_nvml_wait_shut_down_function wait_shut_down;
} fake;

extern struct collect *c;
extern double values[STORE_SET_SERIES_MAX];
extern int64_t t_ns;

// Loads the functions through which a test controls the fake library.
void load_fake(void);

// Passes one line of its description to the fake library.
void say(const char *line);

void begin_with(const char *library, int level, double rate_s);

// Begins with a rate so slow that samples wait for the GPUs, and waits until all are open, because
// the machine may be busy.
void begin_patiently(const char *library, int level);

void begin(int level);

// A teardown: destroys the collector.
int destroy(void **state);

// Destroys the collector, and waits until the library is shut down.
void end(void);

const char *reason(void);

// Whether the source's reason contains these words.
bool says(const char *words);

// Returns false if the source was left out.
bool get_set(size_t *index, struct collect_set *set);

int sample(void);

// The same with collect_sample_late.
int sample_late(void);

// Whether the last sample owes values.
bool owes(void);

struct str label(const struct collect_series *series, const char *key);

// Its series by gpu ("0") and mig ("" = the GPU itself); NULL if not found.
const struct collect_series *find(const char *gpu, const char *mig, const char *name);

double value(const char *gpu, const char *name);

bool missing(const char *gpu, const char *name);

#endif
