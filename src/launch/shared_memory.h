// shared_memory.h - can programs share memory with the agent on this kernel?
#ifndef SONDE_LAUNCH_SHARED_MEMORY_H
#define SONDE_LAUNCH_SHARED_MEMORY_H

#include "base/error.h"

// Makes and seals a file in memory, as libsonde does. Returns 0, or a negative errno with a message
// that says what fails, and what is lost.
int shared_memory_check(struct error *e);

#endif
