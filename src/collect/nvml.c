// nvml.c - finds the library's functions by name, and describes its results in words.
#include "collect/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static const struct gpu_symbol symbols[] = {
#define FUNCTION(member, arguments, names) {offsetof(struct nvml, member), names},
    NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

bool nvml_open(struct nvml *nvml, const char *name, char why[GPU_WORDS_MAX])
{
    *nvml = (struct nvml){0};
    nvml->library = gpu_library(name, symbols, sizeof symbols / sizeof *symbols, nvml, why);
    if (!nvml->library)
        return false;
    if (nvml->init && nvml->device_count && nvml->device_handle)
        return true;
    nvml_close(nvml);
    snprintf(why, GPU_WORDS_MAX,
             "it is not NVML: it lacks nvmlInit, nvmlDeviceGetCount or nvmlDeviceGetHandleByIndex");
    return false;
}

void nvml_close(struct nvml *nvml)
{
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct nvml){0};
}

static const struct {
    int result;
    bool final;
    const char *words;
} results[] = {
    {NVML_SUCCESS, false, "no error"},
    {NVML_UNINITIALIZED, false, "NVML is not initialised"},
    {NVML_INVALID_ARGUMENT, true, "the driver does not know what was asked"},
    {NVML_NOT_SUPPORTED, true, "not supported by this GPU"},
    {NVML_NO_PERMISSION, true,
     "no permission; ask the administrator for access to /dev/nvidia* and to GPU counters"},
    {NVML_INSUFFICIENT_POWER, false, "a power cable of the GPU is not connected"},
    {NVML_DRIVER_NOT_LOADED, false,
     "the NVIDIA driver is not loaded (nvidia-smi would say the same)"},
    {NVML_TIMEOUT, false, "the driver did not answer in time"},
    {NVML_IRQ_ISSUE, false, "the driver gets no interrupts from the GPU"},
    {NVML_LIBRARY_NOT_FOUND, false, "a part of the NVIDIA driver is not installed"},
    {NVML_FUNCTION_NOT_FOUND, true, "the NVIDIA driver is too old for it"},
    {NVML_GPU_IS_LOST, false, "the GPU has fallen off the bus; the node needs a reset"},
    {NVML_RESET_REQUIRED, false, "the GPU needs a reset"},
    {NVML_OPERATING_SYSTEM, true, "the system or the job's limits do not let us at the GPU"},
    {NVML_VERSION_MISMATCH, false,
     "the NVIDIA library and the loaded driver are of different versions; a reboot is due"},
    {NVML_ARGUMENT_VERSION_MISMATCH, true, "the NVIDIA driver is too old for it"},
    {NVML_DEPRECATED, true, "the NVIDIA driver no longer offers it"},
};

static int find(int result)
{
    for (int i = 0; i < (int)(sizeof results / sizeof *results); i++)
        if (results[i].result == result)
            return i;
    return -1;
}

const char *nvml_words(int result)
{
    int i = find(result);
    return i < 0 ? "the driver failed for a reason of its own" : results[i].words;
}

bool nvml_is_final(int result)
{
    int i = find(result);
    return i >= 0 && results[i].final;
}
