// collector_line.h - a collector that is asked for while the job runs, as a line. It travels from
// hand to hand, and only the last one takes it apart:
//
//   aggregator ──▶ sonde run ──┬──▶ agent
//                              └──▶ sonde node ──▶ agent      on every other node, also those that come later
//
//   collector NAME [per_gpu] [input=WORD] [rate=SECONDS] [timeout=SECONDS] [--] COMMAND      is to run from now on, in the place of the one of that name
//   collector NAME                                                                           is to run no more
//
// NAME is a word as metrics' names are. `per_gpu`: a process for each GPU. WORD goes to the
// standard input of COMMAND, which is as that of a script (agent/scripts.h).
#ifndef SONDE_WIRE_COLLECTOR_LINE_H
#define SONDE_WIRE_COLLECTOR_LINE_H

#define COLLECTOR_VERB "collector"

#define COLLECTOR_SECONDS_MIN 0.05 // of a rate, of a time-out
#define COLLECTOR_SECONDS_MAX 86400.0

enum {
    COLLECTORS_MAX = 16, // names at a time
    COLLECTOR_NAME_MAX = 63,
    COLLECTOR_COMMAND_MAX = 8192,
    COLLECTOR_INPUT_MAX = 128 * 1024,
    COLLECTOR_LINE_MAX = COLLECTOR_COMMAND_MAX + COLLECTOR_INPUT_MAX + 512, // all of it
};

#endif
