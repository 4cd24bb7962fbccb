// supervisor.h - the loop of `sonde run`: starts agent and aggregator, restarts them if they end,
// passes messages between them and the nodes, reaps children, handles signals.
#ifndef SONDE_LAUNCH_SUPERVISOR_H
#define SONDE_LAUNCH_SUPERVISOR_H

#include "launch/launch.h"

int supervisor_start_agent(struct launch *l, struct error *e);
int supervisor_start_aggregator(struct launch *l, struct error *e);

// Call it if the agent or the aggregator will not be started again: its clients are refused instead
// of waiting.
void supervisor_refuse_clients(struct launch *l, const struct child *c);

// Writes the aggregator's address into job.json. Before the agent is ready, too, it does nothing,
// so that a client that finds the job can use all of it.
void supervisor_publish(struct launch *l);

// Sends the line "VERB HOST" to the aggregator; `user` is the struct launch (nodes.h).
void supervisor_tell_aggregator(void *user, const char *verb, const char *host);
// Tells the aggregator the nodes that take part, if they have changed.
void supervisor_tell_expected(struct launch *l);

// Waits for the next event, at most until deadline_ns (CLOCK_MONOTONIC; 0 = no limit), and handles
// it.
void supervisor_turn(struct launch *l, int64_t deadline_ns);

#endif
