// launcher.h - the life of a job: what `sonde run` does.
//
//   find the nodes ─▶ check and make folders
//   ─▶ start agent, aggregator and the agents of the other nodes, in parallel ─▶ all are ready
//   ─▶ run the command ─▶ it ends (and may be started again: restart.h)
//   ─▶ end agents and aggregator ─▶ print the summary ─▶ keep the recording
//   ─▶ remove the run folder
//
// If there are other nodes, the aggregator listens for them (its hub). Each has a `sonde relay`,
// which knows the job's key and gets the hub's address from its `sonde node`. Once the aggregator
// is ready, it may write two requests to its control descriptor. "reboot HOST,HOST" asks to start
// the command again without these nodes; the list may be empty. "collector …"
// (wire/collector_line.h) is passed to all agents, and kept for agents that start later.
//
// A failure of telemetry never stops the command: one line says what failed and what is lost, and
// the command runs with the remaining telemetry, or without any (plain.h). With --strict the
// command does not run then. After a wrong option it never runs, because the user can correct the
// option. The launcher replaces an agent that dies, and the new one appends to the same file.
#ifndef SONDE_LAUNCH_LAUNCHER_H
#define SONDE_LAUNCH_LAUNCHER_H

#include "launch/run.h"

// Returns the command's exit code. LAUNCH_FAILED, LAUNCH_WRONG_OPTION: nothing was started, and e
// has the reason. e->code is 0 if there is no message.
int launch_run(const struct launch_options *options, struct error *e);

#endif
