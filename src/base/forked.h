// forked.h - the first steps of a child before exec.
#ifndef SONDE_BASE_FORKED_H
#define SONDE_BASE_FORKED_H

#include <sys/types.h>

// Call it between fork and exec; it is async-signal-safe. From now on this process gets
// `death_signal` when the parent ends (0: none; if `parent` has ended already, this process ends,
// too). It also unblocks all signals and resets ignored ones.
void forked_begin(pid_t parent, int death_signal);

#endif
