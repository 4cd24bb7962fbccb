// request_times.h - the duration of each request: the metric sonde_request_seconds of the job, at
// level 4, with the route as its tag.
//
// The points reach the job's agent like the points of any program (sonde.h): the call never waits,
// and points that do not fit are dropped and counted.
#ifndef SONDE_AGGREGATOR_REQUEST_TIMES_H
#define SONDE_AGGREGATOR_REQUEST_TIMES_H

#include "base/str.h"

#include <stdint.h>

// Call it once in a process, before threads start. Below level 4, or without an agent, nothing is
// recorded. It clears the environment variables for tags and ranks, because they describe other
// programs.
void request_times_open(const char *agent_socket, int level);

// `path` is the path of the route, in static storage.
void request_times_note(struct str path, int64_t took_ns);

#endif
