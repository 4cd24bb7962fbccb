// shared_memory.h - checks whether programs can share memory with the agent on this kernel.
#ifndef SONDE_LAUNCH_SHARED_MEMORY_H
#define SONDE_LAUNCH_SHARED_MEMORY_H

#include "base/error.h"

// Makes and seals a file in memory, as libsonde does. Returns 0, or a negative errno with a message
// that names the failure and what is lost by it.
int shared_memory_check(struct error *e);

#endif
