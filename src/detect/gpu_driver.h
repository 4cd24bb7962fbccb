// gpu_driver.h - the functions that the probe calls of the makers' driver libraries: NVIDIA's
// libcuda.so.1, AMD's libamdhip64. Opened at run time, never linked.
//
// HIP is the CUDA driver's interface under other names: the same parameters, the same meaning, the
// same numbers of errors. Each row below has both names. The CUDA ones are those of the driver API
// since CUDA 9.2 (2018), the HIP ones those since ROCm 5.5; the symbol of a function's second
// version ends in _v2.
#ifndef SONDE_DETECT_GPU_DRIVER_H
#define SONDE_DETECT_GPU_DRIVER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPU_SUCCESS = 0,
    GPU_OUT_OF_MEMORY = 2,
    // the driver also returns it in a process forked after its parent had used the driver
    GPU_NOT_INITIALIZED = 3,
    GPU_UNAVAILABLE = 46, // CUDA only, from MPS
    GPU_NO_DEVICE = 100,
    GPU_MPS_NOT_READY = 807,
    GPU_MPS_CLIENTS = 808,
    GPU_MPS_CONNECTIONS = 809,
};

enum { GPU_EVENT_BLOCKING = 1 }; // threads that wait for it sleep

enum { GPU_UUID_BYTES = 16 };

typedef uint64_t gpu_memory; // an address on the device

// Each row has our name, CUDA's symbol, HIP's symbol, the parameters.
#define GPU_FUNCTIONS(F)                                                                           \
    F(init, "cuInit", "hipInit", (unsigned flags))                                                 \
    F(device_count, "cuDeviceGetCount", "hipGetDeviceCount", (int *count))                         \
    F(device_get, "cuDeviceGet", "hipDeviceGet", (int *device, int index))                         \
    F(device_name, "cuDeviceGetName", "hipDeviceGetName", (char *name, int size, int device))      \
    F(device_uuid, "cuDeviceGetUuid", "hipDeviceGetUuid",                                          \
      (unsigned char uuid[GPU_UUID_BYTES], int device))                                            \
    F(device_attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute",                           \
      (int *value, int attribute, int device))                                                     \
    F(context_create, "cuCtxCreate_v2", "hipCtxCreate",                                            \
      (void **context, unsigned flags, int device))                                                \
    F(context_destroy, "cuCtxDestroy_v2", "hipCtxDestroy", (void *context))                        \
    F(module_load, "cuModuleLoadData", "hipModuleLoadData", (void **module, const void *text))     \
    F(module_function, "cuModuleGetFunction", "hipModuleGetFunction",                              \
      (void **function, void *module, const char *name))                                           \
    F(memory_alloc, "cuMemAlloc_v2", "hipMalloc", (gpu_memory * memory, size_t bytes))             \
    F(memory_free, "cuMemFree_v2", "hipFree", (gpu_memory memory))                                 \
    F(memory_set, "cuMemsetD32_v2", "hipMemsetD32",                                                \
      (gpu_memory memory, unsigned value, size_t count))                                           \
    F(launch, "cuLaunchKernel", "hipModuleLaunchKernel",                                           \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, \
       void **extra))                                                                              \
    F(event_create, "cuEventCreate", "hipEventCreateWithFlags", (void **event, unsigned flags))    \
    F(event_record, "cuEventRecord", "hipEventRecord", (void *event, void *stream))                \
    F(event_wait, "cuEventSynchronize", "hipEventSynchronize", (void *event))                      \
    F(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime",                                  \
      (float *milliseconds, void *from, void *to))                                                 \
    F(error_name, "cuGetErrorName", "hipDrvGetErrorName", (int error, const char **name))

enum { GPU_LIBRARY_NAMES_MAX = 5 };

// The names of a maker's library, and how it differs from the other maker's.
struct gpu_make {
    const char *libraries[GPU_LIBRARY_NAMES_MAX]; // the first existing one is used
    bool hip;                                     // uses the symbols of the second column
    int multiprocessors; // number of the attribute that gives the count of multiprocessors
    bool uuid_is_text;   // its 16 bytes are characters
    unsigned rounds;     // of the work, so that it takes some milliseconds
    // bytes to read: half of it is twice the largest cache of any GPU
    size_t memory_bytes;
    // Makes the work (two functions: sonde_compute, sonde_memory) in the form for module_load, for
    // the GPU of the context. The caller frees *allocated after module_load. Returns 0, or a
    // negative errno with a message.
    int (*make_work)(const char **work, char **allocated, struct error *e);
};

extern const struct gpu_make gpu_make_cuda, gpu_make_hip; // work_cuda.c, work_hip.c

struct gpu_driver {
    const struct gpu_make *make;
#define GPU_MEMBER(name, cuda, hip, parameters) int(*name) parameters;
    GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
};

// Opens the first available library of the names; returns NULL if none can be opened.
void *gpu_library_open(const char *const names[GPU_LIBRARY_NAMES_MAX]);

#endif
