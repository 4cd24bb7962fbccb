// cuda.c - plays NVIDIA's driver library (libcuda.so.1) for the probe, as the environment says:
//
//   FAKE_CUDA_DEVICES   how many there are (2)
//   FAKE_CUDA_MS        milliseconds that a timed stretch takes, one for each device, separated by commas; the last serves the rest (2)
//   FAKE_CUDA_FREE_MIB  memory that can be allocated (1024); 0: not even a context
//   FAKE_CUDA_HANGS     the device whose work never ends
//   FAKE_CUDA_DIES      the device whose work kills the process
//
// It complains (and fails) about what the real one would not take: no PTX, an unknown function, parameters that are not what the work has, a
// context that is left behind.
#include "detect/cuda.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID = 1, NOT_FOUND = 500 };

#define PUBLIC __attribute__((visibility("default")))

static int current = -1; // device of the context
static long free_mib;
static bool recorded;

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static float milliseconds(int device)
{
    const char *text = getenv("FAKE_CUDA_MS");
    double ms = 2;
    for (int i = 0; text && i <= device; i++) {
        ms = atof(text);
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return (float)ms;
}

PUBLIC int cuInit(unsigned flags)
{
    return flags ? INVALID : number("FAKE_CUDA_DEVICES", 2) ? CUDA_SUCCESS : CUDA_NO_DEVICE;
}

PUBLIC int cuDeviceGetCount(int *count)
{
    *count = (int)number("FAKE_CUDA_DEVICES", 2);
    return CUDA_SUCCESS;
}

PUBLIC int cuDeviceGet(int *device, int index)
{
    *device = index;
    return index < number("FAKE_CUDA_DEVICES", 2) ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Fake %d", device);
    return CUDA_SUCCESS;
}

PUBLIC int cuDeviceGetUuid(unsigned char uuid[CUDA_UUID_BYTES], int device)
{
    for (int i = 0; i < CUDA_UUID_BYTES; i++)
        uuid[i] = (unsigned char)(i * 16 + device);
    return CUDA_SUCCESS;
}

PUBLIC int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = 132;
    return attribute == CUDA_ATTRIBUTE_MULTIPROCESSORS ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    free_mib = number("FAKE_CUDA_FREE_MIB", 1024);
    if (!free_mib)
        return CUDA_OUT_OF_MEMORY;
    current = device;
    *context = &current;
    return flags ? INVALID : CUDA_SUCCESS;
}

PUBLIC int cuCtxDestroy_v2(void *context)
{
    if (context != &current)
        return INVALID;
    current = -1;
    return CUDA_SUCCESS;
}

PUBLIC int cuModuleLoadData(void **module, const void *text)
{
    *module = (void *)(uintptr_t)text;
    return current >= 0 && strncmp(text, ".version", 8) == 0 ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuModuleGetFunction(void **function, void *module, const char *name)
{
    char entry[64];
    snprintf(entry, sizeof entry, ".entry %s(", name);
    *function = strstr(module, entry);
    return *function ? CUDA_SUCCESS : NOT_FOUND;
}

PUBLIC int cuMemAlloc_v2(cuda_memory *memory, size_t bytes)
{
    long mib = (long)(bytes >> 20);
    if (current < 0 || mib > free_mib)
        return CUDA_OUT_OF_MEMORY;
    free_mib -= mib;
    *memory = 0x1000;
    return CUDA_SUCCESS;
}

PUBLIC int cuMemsetD32_v2(cuda_memory memory, unsigned value, size_t count)
{
    return memory && !value && count ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                          void **extra)
{
    // The work's entry lists what it takes: an address and a number, or an address, a number and an address.
    const char *end = strchr(function, ')');
    int wanted = 0;
    for (const char *at = function; end && (at = strstr(at, ".param")) && at < end; at++)
        wanted++;
    for (int i = 0; i < wanted; i++)
        if (!parameters[i])
            return INVALID;
    if (current < 0 || wanted < 2 || grid_x % 132 || grid_y != 1 || grid_z != 1 || !block_x || block_y != 1 ||
        block_z != 1 || shared_bytes || stream || extra)
        return INVALID;
    if (number("FAKE_CUDA_HANGS", -1) == current)
        for (;;)
            pause();
    if (number("FAKE_CUDA_DIES", -1) == current)
        raise(SIGKILL);
    return CUDA_SUCCESS;
}

PUBLIC int cuEventCreate(void **event, unsigned flags)
{
    *event = &recorded;
    return flags ? INVALID : CUDA_SUCCESS;
}

PUBLIC int cuEventRecord(void *event, void *stream)
{
    recorded = true;
    return event && !stream ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuEventSynchronize(void *event)
{
    return event && recorded ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuEventElapsedTime(float *ms, void *from, void *to)
{
    *ms = milliseconds(current);
    return from && to ? CUDA_SUCCESS : INVALID;
}

PUBLIC int cuGetErrorName(int error, const char **name)
{
    *name = error == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == NOT_FOUND        ? "CUDA_ERROR_NOT_FOUND"
                                        : "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
}
