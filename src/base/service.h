// service.h - prepares a process that serves others for a long time.
#ifndef SONDE_BASE_SERVICE_H
#define SONDE_BASE_SERVICE_H

#include "base/process_memory.h"

// Sets malloc up (process_memory.h) and makes room for the usual number of descriptors
// (descriptors.h). Call it before the process starts its first thread.
void service_prepare(size_t mapped_from_bytes);

#endif
