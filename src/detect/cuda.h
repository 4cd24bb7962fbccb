// cuda.h - of NVIDIA's driver library (libcuda.so.1), what the probe calls. Opened at run time, never linked.
//
// Names and signatures are those of the driver API since CUDA 4 (2011); the driver keeps them for good. Where a function has a second version, its
// symbol ends in _v2.
#ifndef SONDE_DETECT_CUDA_H
#define SONDE_DETECT_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_SUCCESS = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    CUDA_UUID_BYTES = 16
};

typedef uint64_t cuda_memory; // an address on the device

// Each row: our name, the symbol, the parameters.
#define CUDA_FUNCTIONS(F)                                                                                     \
    F(init, "cuInit", (unsigned flags))                                                                       \
    F(device_count, "cuDeviceGetCount", (int *count))                                                         \
    F(device_get, "cuDeviceGet", (int *device, int index))                                                    \
    F(device_name, "cuDeviceGetName", (char *name, int size, int device))                                     \
    F(device_uuid, "cuDeviceGetUuid", (unsigned char uuid[CUDA_UUID_BYTES], int device))                      \
    F(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                      \
    F(context_create, "cuCtxCreate_v2", (void **context, unsigned flags, int device))                         \
    F(context_destroy, "cuCtxDestroy_v2", (void *context))                                                    \
    F(module_load, "cuModuleLoadData", (void **module, const void *text))                                     \
    F(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))              \
    F(memory_alloc, "cuMemAlloc_v2", (cuda_memory * memory, size_t bytes))                                    \
    F(memory_set, "cuMemsetD32_v2", (cuda_memory memory, unsigned value, size_t count))                       \
    F(launch, "cuLaunchKernel",                                                                               \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra))               \
    F(event_create, "cuEventCreate", (void **event, unsigned flags))                                          \
    F(event_record, "cuEventRecord", (void *event, void *stream))                                             \
    F(event_wait, "cuEventSynchronize", (void *event))                                                        \
    F(event_elapsed, "cuEventElapsedTime", (float *milliseconds, void *from, void *to))                       \
    F(error_name, "cuGetErrorName", (int error, const char **name))

struct cuda {
#define CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

#endif
