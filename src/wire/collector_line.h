// collector_line.h - a line of text that starts or stops a collector while the job runs. Processes
// forward the line, and only the agent parses it:
//
//   aggregator ──▶ sonde run ──┬──▶ agent
//                              └──▶ sonde node ──▶ agent      on every other node, including nodes
//                                                             that join later
//
//   collector NAME [per_gpu] [input=WORD] [rate=SECONDS] [timeout=SECONDS] [--] COMMAND
//       starts a collector, and replaces the collector of this name
//   collector NAME
//       stops the collector of this name
//
// NAME has the characters of a metric's name. `per_gpu` starts one process per GPU. WORD goes to
// the standard input of COMMAND, which is a command like a script's (agent/scripts.h).
#ifndef SONDE_WIRE_COLLECTOR_LINE_H
#define SONDE_WIRE_COLLECTOR_LINE_H

#define COLLECTOR_VERB "collector"

#define COLLECTOR_SECONDS_MIN 0.05 // of rate and timeout
#define COLLECTOR_SECONDS_MAX 86400.0

enum {
    COLLECTORS_MAX = 16, // collectors at the same time
    COLLECTOR_NAME_MAX = 63,
    COLLECTOR_COMMAND_MAX = 8192,
    COLLECTOR_INPUT_MAX = 128 * 1024,
    // bytes of a complete line
    COLLECTOR_LINE_MAX = COLLECTOR_COMMAND_MAX + COLLECTOR_INPUT_MAX + 512,
};

#endif
