// attempt.h - annotates the recording at the beginning of each attempt of the command.
#ifndef SONDE_LAUNCH_ATTEMPT_H
#define SONDE_LAUNCH_ATTEMPT_H

#include <stddef.h>

// Emits "attempt N on K nodes" with the tags attempt=N and nodes=K to the agent that listens on
// `socket`, from a process of its own: libsonde reads its environment once, and the launcher itself
// is not a program of the job. The launcher's loop reaps that process.
void attempt_annotate(const char *socket, int attempt, size_t nodes);

#endif
