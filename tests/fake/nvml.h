// nvml.h - the interface for tests to the fake NVIDIA library in their process, through dlsym.
//
// Its script has the lines of script.h. At the first nvmlInit, the library also reads them from the
// file in SONDE_FAKE_NVML. It has these additional lines:
//
//   mig 0 2                GPU 0 has two MIG instances
//   xid 3 79               GPU 3 has an event
//   block init / free init nvmlInit waits from now on / returns
// play FILE              each reading of a GPU's utilisation takes the next row of FILE, which has
// utilisation, memory activity and memory used of each GPU
#ifndef SONDE_TESTS_FAKE_NVML_H
#define SONDE_TESTS_FAKE_NVML_H

#include "fake/script.h"

// Waits until every caller of nvmlInit has called nvmlShutdown. Exported as
// fake_nvml_wait_shut_down.
typedef void (*fake_nvml_wait_shut_down_function)(void);

#endif
