// scripts.h - commands of the user's that print points: "name value k=v …" and whatever else a text
// connection may send (ingest.h).
//
// A script with a rate is run at multiples of it since the epoch, one run at a time; one without is
// started once and prints when it likes, and is started again, later and later, when it ends.
// Either way lines are taken as they come, and what has no time gets that of its arrival.
//
//   sh -c COMMAND   in a process group of its own, killed with the agent; stdin is /dev/null
//   stdout          lines, at most SCRIPT_BYTES_A_SECOND of them a second: who prints more waits
//   stderr          its last line is said when the script fails; a line that begins with "sonde: " is said at once, a few of each run
//   the end         an exit code that is not 0, a signal, a time-out: said once in a row, and recorded as sonde_script_exit_code. The first of a row
//                   is an annotation, too (script=NAME, failing=yes), and so is its end (failing=no): `sonde status` tells of what fails
//
// What the run was started with is made by scripts_create; more come and go while the agent runs
// (collectors.h). In the thread of the event loop.
#ifndef SONDE_AGENT_SCRIPTS_H
#define SONDE_AGENT_SCRIPTS_H

#include "agent/script_spec.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    SCRIPT_SAID_MAX = 10, // lines of its standard error of each run
    SCRIPT_BYTES_A_SECOND = 1 << 20,
    SCRIPT_TIMED_OUT = 124, // its exit code then; 128 + N for signal N
};

struct scripts;
struct script;

// Starts what `text` says (NULL or "" = nothing). They run in `folder`. `loop` has to run for
// anything to happen.
int scripts_create(uv_loop_t *loop, struct ingest *in, const char *text, const char *folder,
                   struct scripts **out, struct error *e);

// One more, until scripts_remove. Everything is copied. NULL with e set: no memory.
struct script *scripts_add(struct scripts *all, const struct script_spec *spec, struct error *e);

// Kills it; what it has printed is taken. *s is gone, or goes by itself.
void scripts_remove(struct script *s);

// Kills them and takes what they have printed. Run the loop until it is empty before
// scripts_destroy. NULL is allowed for both.
void scripts_finish(struct scripts *s);
void scripts_destroy(struct scripts *s);

#endif
