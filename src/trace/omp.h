// omp.h - the part of OpenMP's tools interface (OMPT) that sonde uses.
//
// The library is built without an OpenMP runtime, so the declarations are here. Names, numbers and
// arguments are those of the OpenMP specification 5.0, which later versions keep.
#ifndef SONDE_TRACE_OMP_H
#define SONDE_TRACE_OMP_H

#include <stdint.h>

enum ompt_callback_number {
    OMPT_PARALLEL_BEGIN = 3,
    OMPT_PARALLEL_END = 4,
    OMPT_IMPLICIT_TASK = 7,
    OMPT_SYNC_REGION_WAIT = 16,
};

enum ompt_endpoint { OMPT_BEGIN = 1, OMPT_END = 2 };

enum ompt_task_flag { OMPT_TASK_IMPLICIT = 2 };

// Kinds of waiting. Runtimes of OpenMP 5.0 call every implicit barrier BARRIER_IMPLICIT.
enum ompt_sync_region {
    OMPT_BARRIER = 1,
    OMPT_BARRIER_IMPLICIT = 2,
    OMPT_BARRIER_EXPLICIT = 3,
    OMPT_BARRIER_IMPLICIT_WORKSHARE = 8,
    OMPT_BARRIER_IMPLICIT_PARALLEL = 9,
    OMPT_BARRIER_TEAMS = 10,
};

// The runtime keeps one for each region and task; its content is the tool's. At first 0.
union ompt_data {
    uint64_t value;
    void *pointer;
};

typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);
typedef int (*ompt_set_callback)(int number, ompt_function callback);

struct ompt_tool {
    int (*initialize)(ompt_lookup lookup, int device, union ompt_data *tool);
    void (*finalize)(union ompt_data *tool);
    union ompt_data data;
};

// The runtime calls it once, at the program's first use of OpenMP. NULL: no tool.
__attribute__((visibility("default"))) struct ompt_tool *ompt_start_tool(unsigned version,
                                                                         const char *runtime);

#endif
