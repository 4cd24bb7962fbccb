// forked.h - what a process that is about to become another program does first.
#ifndef SONDE_BASE_FORKED_H
#define SONDE_BASE_FORKED_H

#include <sys/types.h>

// Between fork and exec, and only what is allowed there: from now on `death_signal` comes when the parent ends (0: none; if `parent` has ended already, this process
// does, too), and signals are as a program expects them: none ignored, none blocked.
void forked_begin(pid_t parent, int death_signal);

#endif
