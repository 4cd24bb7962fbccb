// supervisor.h - the loop of `sonde run`: starts agent and aggregator, starts them again when they
// end, passes messages between them and the nodes, reaps children, takes signals.
#ifndef SONDE_LAUNCH_SUPERVISOR_H
#define SONDE_LAUNCH_SUPERVISOR_H

#include "launch/launch.h"

int supervisor_start_agent(struct launch *l, struct error *e);
int supervisor_start_aggregator(struct launch *l, struct error *e);

// The agent or aggregator will not come back: its clients are refused instead of waiting for it.
void supervisor_refuse_clients(struct launch *l, const struct child *c);

// Writes into job.json where the aggregator can be reached. Does nothing before the agent is there,
// too, so that whoever finds the job finds all of it.
void supervisor_publish(struct launch *l);

// Sends the line "VERB HOST" to the aggregator; `user` is the struct launch (nodes.h).
void supervisor_tell_aggregator(void *user, const char *verb, const char *host);
// Tells it which nodes take part, if that has changed.
void supervisor_tell_expected(struct launch *l);

// Waits for the next event, at most until deadline_ns (CLOCK_MONOTONIC; 0 = no limit), and handles
// it.
void supervisor_turn(struct launch *l, int64_t deadline_ns);

#endif
