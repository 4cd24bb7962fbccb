// forked.h - the first steps of a child before exec.
#ifndef SONDE_BASE_FORKED_H
#define SONDE_BASE_FORKED_H

#include <sys/types.h>

// Call it between fork and exec; it is async-signal-safe. From then on this process gets
// `death_signal` (0: none) when the parent ends. If `parent` has ended already, this process ends,
// too. The call also unblocks all signals and resets ignored ones.
void forked_begin(pid_t parent, int death_signal);

#endif
