// nvml.h - controls the fake NVIDIA library in a test's own process, through dlsym.
//
// The lines are those of script.h; also from the file that SONDE_FAKE_NVML names, at the first
// nvmlInit. And these:
//
//   mig 0 2                GPU 0 has two MIG instances
//   xid 3 79               an event for GPU 3
//   block init / free init nvmlInit waits from now on / returns
//   play FILE              each reading of a GPU's utilisation takes the next row of FILE: for each
//                          GPU utilisation, memory activity, memory used
#ifndef SONDE_TESTS_FAKE_NVML_H
#define SONDE_TESTS_FAKE_NVML_H

#include "fake/script.h"

// Waits until every caller of nvmlInit has called nvmlShutdown. Exported as
// fake_nvml_wait_shut_down.
typedef void (*fake_nvml_wait_shut_down_function)(void);

#endif
