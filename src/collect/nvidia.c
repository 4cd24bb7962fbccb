// nvidia.c - the backend for NVIDIA GPUs, which uses NVML: starts and stops it, and shows the MIG
// instances of a GPU as parts of the GPU.
#include "collect/nvidia_device.h"

#include <stdio.h>
#include <stdlib.h>

static struct gpu_answer answer_of(int result)
{
    return (struct gpu_answer){.lost = result == NVML_GPU_IS_LOST,
                               .words = result == NVML_SUCCESS ? NULL : nvml_words(result)};
}

static void stop(void *library, bool lost)
{
    struct nvml *nvml = library;
    // otherwise it stays open, because shutting down or unloading would access the lost GPU
    if (!lost) {
        if (nvml->shutdown)
            nvml->shutdown();
        nvml_close(nvml);
    }
    free(nvml);
}

static bool start(const char *root, void **library, unsigned *count, char why[GPU_WORDS_MAX])
{
    const char *name = gpu_library_name("SONDE_NVML", "libnvidia-ml.so.1", root, why);
    char wrong[GPU_WORDS_MAX];
    if (!name)
        return false;
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml || !nvml_open(nvml, name, wrong)) {
        snprintf(why, GPU_WORDS_MAX, "no NVIDIA library: %.*s", GPU_WORDS_MAX - 32,
                 nvml ? wrong : "no memory");
        free(nvml);
        return false;
    }
    int failed = nvml->init();
    if (failed) {
        snprintf(why, GPU_WORDS_MAX, "cannot start the NVIDIA driver: %s", nvml_words(failed));
        nvml_close(nvml);
        free(nvml);
        return false;
    }
    failed = nvml->device_count(count);
    if (!failed && *count) {
        *library = nvml;
        return true;
    }
    if (failed)
        snprintf(why, GPU_WORDS_MAX, "cannot count the NVIDIA GPUs: %s", nvml_words(failed));
    else
        snprintf(why, GPU_WORDS_MAX, "there is no NVIDIA GPU on this node");
    stop(nvml, false);
    return false;
}

static int open_device(const struct nvml *nvml, struct gpu_device *d, nvml_device handle,
                       nvml_device parent)
{
    struct nvidia_device *own = calloc(1, sizeof *own);
    if (!own)
        return NVML_UNKNOWN;
    d->own = own;
    own->gpu = d;
    int result = nvidia_device_open(nvml, own, handle, parent);
    if (result != NVML_SUCCESS) {
        nvidia_device_close(nvml, own);
        free(own);
        d->own = NULL;
    }
    return result;
}

// Opens at most as many instances as have room.
static int open_mig(const struct nvml *nvml, nvml_device handle, struct gpu_device *devices,
                    size_t *count)
{
    unsigned current = 0, pending, most = 0;
    if (!nvml->mig_mode || !nvml->mig_count_max || !nvml->mig_handle)
        return NVML_SUCCESS;
    if (nvml->mig_mode(handle, &current, &pending) != NVML_SUCCESS || !current)
        return NVML_SUCCESS;
    if (nvml->mig_count_max(handle, &most) != NVML_SUCCESS)
        return NVML_SUCCESS;
    for (unsigned i = 0; i < most && *count <= GPU_PARTS_MAX; i++) {
        nvml_device instance;
        int result = nvml->mig_handle(handle, i, &instance);
        if (result == NVML_SUCCESS)
            result = open_device(nvml, &devices[*count], instance, handle);
        if (result == NVML_GPU_IS_LOST)
            return result;
        if (result != NVML_SUCCESS)
            continue;
        snprintf(devices[*count].part, sizeof devices->part, "%u", i);
        ++*count;
    }
    return NVML_SUCCESS;
}

static struct gpu_answer open_gpu(void *library, unsigned index,
                                  struct gpu_device devices[1 + GPU_PARTS_MAX], size_t *count)
{
    const struct nvml *nvml = library;
    nvml_device handle;
    int result = nvml->device_handle(index, &handle);
    if (result == NVML_SUCCESS)
        result = open_device(nvml, devices, handle, NULL);
    if (result == NVML_SUCCESS) {
        *count = 1;
        result = open_mig(nvml, handle, devices, count);
    }
    return answer_of(result);
}

static struct gpu_answer sample(void *library, struct gpu_device *d)
{
    return answer_of(nvidia_device_sample(library, d->own));
}

static void close_device(void *library, struct gpu_device *d)
{
    nvidia_device_close(library, d->own);
    free(d->own);
}

const struct gpu_backend gpu_nvml = {"nvml", start, stop, open_gpu, sample, close_device};
