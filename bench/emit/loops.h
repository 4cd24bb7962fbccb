// loops.h - a loop for each measured call. loops.c includes only sonde.h, so that the compiler
// cannot remove a call.
#ifndef SONDE_BENCH_EMIT_LOOPS_H
#define SONDE_BENCH_EMIT_LOOPS_H

#include "sonde.h"

struct loop_target {
    sonde_handle metric, group;
    const double *row;
};

// Repeats the call `times` times.
typedef void loop(const struct loop_target *t, long times);

loop loop_empty, loop_emit, loop_emit_at, loop_row, loop_set, loop_add, loop_clock_gettime,
    loop_ticks, loop_span, loop_free_span;

#endif
