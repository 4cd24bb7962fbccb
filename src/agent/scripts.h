// scripts.h - commands of the user's that print points: "name value k=v …" and whatever else a text connection may send (ingest.h).
//
// A script with a rate is run at multiples of it since the epoch, one run at a time; one without is started once and prints when it likes, and is
// started again, later and later, when it ends. Either way lines are taken as they come, and what has no time gets that of its arrival.
//
//   sh -c COMMAND   in a process group of its own, killed with the agent; stdin is /dev/null
//   stdout          lines, at most SCRIPT_BYTES_A_SECOND of them a second: who prints more waits
//   stderr          its last line is said when the script fails
//   the end         an exit code that is not 0, a signal, a time-out: said once in a row, and recorded as sonde_script_exit_code
//
// In the thread of the event loop.
#ifndef SONDE_AGENT_SCRIPTS_H
#define SONDE_AGENT_SCRIPTS_H

#include "base/error.h"
#include "ingest/ingest.h"

#include <uv.h>

enum {
    SCRIPTS_MAX = 16,
    SCRIPT_NAME_SIZE = 64,
    SCRIPT_BYTES_A_SECOND = 1 << 20,
    SCRIPT_TIMED_OUT = 124, // its exit code then; 128 + N for signal N
};

// Each line of `text` is a script: [name=WORD] [rate=SECONDS] [timeout=SECONDS] COMMAND. Without a name it is the command's first word. The time-out
// of a script with a rate is for each run (default: the rate, at least 10 s; instants that come meanwhile are left out), of one without a rate for the time without a line (default: none).
// -EINVAL with e set when that is not what `text` is.
int scripts_check(const char *text, struct error *e);

struct scripts;

// Starts what `text` says; NULL or "" = nothing, and *out is NULL. They run in `folder`. `loop` has to run for anything to happen.
int scripts_create(uv_loop_t *loop, struct ingest *in, const char *text, const char *folder, struct scripts **out,
                   struct error *e);

// Kills them and takes what they have printed. Run the loop until it is empty before scripts_destroy. NULL is allowed for both.
void scripts_finish(struct scripts *s);
void scripts_destroy(struct scripts *s);

#endif
