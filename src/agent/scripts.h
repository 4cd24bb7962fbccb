// scripts.h - commands of the user that print points: "name value k=v …", or any other line that a
// text connection may send (ingest.h).
//
// A script with a rate runs at multiples of that rate since the epoch, one run at a time. A script
// without a rate starts once and prints at any time. When it ends, the agent starts it again, after
// growing pauses. In both cases the agent handles lines when they arrive, and points without a time
// get the time of their arrival.
//
//   sh -c COMMAND   in a process group of its own, killed with the agent; stdin is /dev/null
//   stdout          lines, at most SCRIPT_BYTES_A_SECOND; a script that prints faster blocks
//   stderr          the last line is logged if the script fails; a line that begins with
//                   "sonde: " is logged at once, a few of each run
//   the end         an exit code other than 0, a signal, a time-out: recorded each time as
//                   sonde_script_exit_code. The first failure in a row is logged, and is an
//                   annotation (script=NAME, failing=yes), as is the next success (failing=no):
//                   `sonde status` lists failing scripts
//
// scripts_create starts the scripts of the run. Collectors add and remove scripts while the agent
// runs (collectors.h). Call all functions in the thread of the event loop.
#ifndef SONDE_AGENT_SCRIPTS_H
#define SONDE_AGENT_SCRIPTS_H

#include "agent/script_spec.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    SCRIPT_LOGGED_MAX = 10, // number of lines of a run's standard error that are logged
    SCRIPT_BYTES_A_SECOND = 1 << 20,
    SCRIPT_TIMED_OUT = 124, // exit code of a run that timed out; 128 + N for signal N
};

struct scripts;
struct script;

// Starts the scripts in `text` (NULL or "" = none), with the working folder `folder`. They make
// progress only while `loop` runs.
int scripts_create(uv_loop_t *loop, struct ingest *in, const char *text, const char *folder,
                   struct scripts **out, struct error *e);

// Adds a script, which runs until scripts_remove. Copies the spec. Returns NULL with e set if
// memory is exhausted.
struct script *scripts_add(struct scripts *all, const struct script_spec *spec, struct error *e);

// Handles the script's pending output, then kills it. *s is no longer valid.
void scripts_remove(struct script *s);

// Handles the pending output of all scripts, then kills them. Run the loop until it is empty before
// scripts_destroy. NULL is allowed for both.
void scripts_finish(struct scripts *s);
void scripts_destroy(struct scripts *s);

#endif
