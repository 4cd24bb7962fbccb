// descendants.h - finds the processes that a command has left running, and their descendants,
// through the parent ids in /proc.
//
// Before a command is started again, all its processes must be gone: when a script ends, its srun
// may continue. The launcher makes itself the subreaper, so orphans become its children and it can
// still find them.
#ifndef SONDE_LAUNCH_DESCENDANTS_H
#define SONDE_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DESCENDANTS_LOOKED_AT_MAX = 1 << 20 }; // processes that one search reads in /proc

// From now on, orphans among our descendants become our children.
void descendants_adopt(void);

// Sends `signal` (0: none) to all our descendants except the children that spare() names and their
// descendants. Returns the number of signalled processes; zombies do not count.
size_t descendants_signal(int signal, bool (*spare)(void *user, pid_t child), void *user);

// Kills the rest of the session of a child that has just been reaped, such as the processes of an
// agent that was killed, and their children.
void descendants_end_session(pid_t session);

#endif
