// codes.h - exit codes of a run other than those of the command, and the time limit for the start
// of its processes.
#ifndef SONDE_LAUNCH_CODES_H
#define SONDE_LAUNCH_CODES_H

enum {
    LAUNCH_START_TIMEOUT_MS = 10000, // for agent and aggregator to say "ready"
    LAUNCH_GAVE_UP = 1,              // the command was stopped and cannot be started again
    LAUNCH_FAILED = 1,               // --strict, and telemetry cannot start
    LAUNCH_WRONG_OPTION = 2,
    LAUNCH_NOT_EXECUTABLE = 126,
    LAUNCH_NOT_FOUND = 127,
    LAUNCH_SIGNALLED = 128,
};

#endif
