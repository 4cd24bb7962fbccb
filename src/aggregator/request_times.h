// request_times.h - how long each request took: the metric sonde_request_seconds of the job, at
// level 4, with the route as its tag.
//
// The points go to the job's agent as those of any program do (sonde.h): nothing is waited for, and
// what does not fit is dropped and counted.
#ifndef SONDE_AGGREGATOR_REQUEST_TIMES_H
#define SONDE_AGGREGATOR_REQUEST_TIMES_H

#include "base/str.h"

#include <stdint.h>

// Once in a process, before threads start. Nothing is recorded below level 4, nor without an agent.
// Clears the variables of tags and ranks, which describe other programs.
void request_times_open(const char *agent_socket, int level);

// `path` is the route's, of static storage.
void request_times_note(struct str path, int64_t took_ns);

#endif
