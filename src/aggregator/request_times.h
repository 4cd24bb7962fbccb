// request_times.h - the duration of each request: the metric sonde_request_seconds of the job, at
// level 4, with the route as its tag.
//
// The points reach the job's agent like those of any program (sonde.h): the call never waits, and
// points that do not fit are dropped and counted.
#ifndef SONDE_AGGREGATOR_REQUEST_TIMES_H
#define SONDE_AGGREGATOR_REQUEST_TIMES_H

#include "base/str.h"

#include <stdint.h>

// Call it once in a process, before threads start. Records nothing below level 4, or without an
// agent. Clears the variables of tags and ranks, because they describe other programs.
void request_times_open(const char *agent_socket, int level);

// `path` is that of the route, in static storage.
void request_times_note(struct str path, int64_t took_ns);

#endif
