// nvml.h - how a test drives the fake NVIDIA library in its own process: the same symbols by dlsym.
//
// A script is lines of text; from the file that SONDE_FAKE_NVML names at nvmlInit, or one by one with fake_nvml_line:
//
//   gpus 8                 at nvmlInit; begins a new machine
//   init 9                 nvmlInit fails with this result
//   set 3 power 412000     GPU 3 (or * for all) answers this from now on, in NVML's unit
//   fail 3 power 3         its calls for power fail with this result; 0 = no longer. `all` = every call
//   mig 0 2                GPU 0 has two MIG instances
//   xid 3 79               an event for GPU 3
//   block 3 / free 3       every call for GPU 3 waits from now on / goes on
//   block init / free init the same of nvmlInit
//   play FILE              each reading of a GPU's utilisation takes the next row: for each GPU utilisation, memory activity, memory used
#ifndef SONDE_TESTS_FAKE_NVML_H
#define SONDE_TESTS_FAKE_NVML_H

// False when the line is not one of the above.
typedef _Bool (*fake_nvml_line_function)(const char *line);

// Whether a call for the GPU is being held.
typedef _Bool (*fake_nvml_blocked_function)(unsigned gpu);

// Waits until everybody who called nvmlInit has called nvmlShutdown.
typedef void (*fake_nvml_wait_shut_down_function)(void);

#endif
