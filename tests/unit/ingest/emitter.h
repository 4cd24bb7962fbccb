// emitter.h - the modes of the program `emitter`, and what they share.
#ifndef SONDE_TEST_INGEST_EMITTER_H
#define SONDE_TEST_INGEST_EMITTER_H

#include "sonde.h"

#include <stdbool.h>
#include <stdint.h>

// The arguments behind the name of the mode.
extern char **arguments;
extern int argument_count;

// Returns an argument of the mode as a number; 0 without it.
long number(int i);

// Prints a line, and flushes it.
void say(const char *text);

// Waits for a line of the test on standard input.
void wait_for_line(void);

extern uint64_t random_state;
uint64_t random_u64(void);

// Runs `count` threads, at most 1024, until they end; each gets its number. Returns whether all
// could be started.
bool run_threads(long count, void *(*run)(void *index));

// Prints the number of dropped values, if `good`. Returns the exit code of a mode.
int end_with_dropped(bool good);

// Defines a metric with one tag, whose value is a number.
sonde_handle tagged(const char *name, const char *key, long value, enum sonde_kind kind);

// Runs the mode at the beginning of the remaining arguments.
int run_rest(void);

// emitter_points.c: points of many threads, and of programs without an agent
int mode_threads(void);
int mode_waves(void);
int mode_crowd(void);
int mode_points(void);
int mode_waits(void);
int mode_late(void);
int mode_moves(void);
int mode_comes_back(void);
int mode_undelivered(void);
int mode_stream(void);
int mode_slow(void);

// emitter_forks.c: programs that fork, clone or execute another one
int mode_fork(void);
int mode_forks(void);
int mode_fork_tight(void);
int mode_first_calls(void);
int mode_clone(void);
int mode_threads_of_forks(void);
int mode_forks_with_lock(void);
int mode_exec(void);

// emitter_cells.c: counters and gauges
int mode_cells(void);
int mode_add_crowd(void);
int mode_bad_amounts(void);
int mode_count(void);
int mode_count_into(void);
int mode_count_each(void);
int mode_many_cells(void);
int mode_groups(void);

// emitter_spans.c: spans
int mode_spans(void);
int mode_free_spans(void);
int mode_clock_is_set(void);
int mode_span_of_later_slot(void);
int mode_span_crowd(void);
int mode_span_waits(void);
int mode_span_pairs(void);
int mode_span_texts(void);

// emitter_limits.c: limits, configuration, and a short supply of memory, descriptors and rights
int mode_limits(void);
int mode_config(void);
int mode_define(void);
int mode_level(void);
int mode_closes(void);
int mode_loud(void);
int mode_locked(void);
int mode_tight(void);
int mode_scribble(void);
int mode_everything(void);
int mode_cancels(void);
int mode_pending(void);
int mode_little_stack(void);
int mode_as(void);
int mode_no_memory(void);
int mode_unsealed(void);

#endif
