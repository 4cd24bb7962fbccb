// launcher.h - the life of a job: what `sonde run` does.
//
//   nodes found ─▶ folders checked and made ─▶ agent, aggregator and the agents of the other nodes started, side by side ─▶ all ready
//   ─▶ the command ─▶ it ends (and may be started again: restart.h) ─▶ agents and aggregator end ─▶ summary ─▶ recording kept ─▶ run folder removed
//
// With other nodes the aggregator listens for them (its hub): each has a `sonde relay`, which is
// told where by its `sonde node` and knows the job's key. Once it is ready, the aggregator may say
// on its control descriptor: "reboot HOST,HOST" (start the command again without these nodes; the
// list may be empty), and "collector …" (wire/collector_line.h): handed on to all agents, and kept
// for those that come later.
//
// A failure of telemetry never stops the command: one line says what failed and what is lost, and
// the command runs with the remaining telemetry, or without any (plain.h). With --strict the
// command does not run then. After a wrong option it does not run either, because the user can mend
// that. The launcher replaces an agent that dies, and the new one appends to the same file.
#ifndef SONDE_LAUNCH_LAUNCHER_H
#define SONDE_LAUNCH_LAUNCHER_H

#include "launch/run.h"

// Returns the command's exit code. LAUNCH_FAILED, LAUNCH_WRONG_OPTION: nothing was started, and e
// says why. e->code is 0 if there is no message.
int launch_run(const struct launch_options *options, struct error *e);

#endif
