// descendants.h - what a command has left running: its processes and theirs, found in /proc by who
// started whom.
//
// A command that is to be started again must be gone altogether: the srun of a script that was
// ended goes on without its script. The launcher makes itself the subreaper, so that orphans become
// its children and stay findable.
#ifndef SONDE_LAUNCH_DESCENDANTS_H
#define SONDE_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DESCENDANTS_LOOKED_AT_MAX = 1 << 20 }; // processes of the machine

// Orphans among our descendants become our children from now on.
void descendants_adopt(void);

// Sends `signal` (0: none) to every process that descends from us, but for our children that
// spare() names and what descends from those. Returns how many there were; zombies do not count.
size_t descendants_signal(int signal, bool (*spare)(void *user, pid_t child), void *user);

// Kills what is left of the session of a child that has just been reaped: what an agent that was
// killed had started, and what that has started.
void descendants_end_session(pid_t session);

#endif
