// nvidia_device.h - one NVIDIA GPU, or one MIG instance of it: its metrics and their current
// values.
//
// Used by one thread at a time, the GPU's own. Any call may block without limit.
#ifndef SONDE_COLLECT_NVIDIA_DEVICE_H
#define SONDE_COLLECT_NVIDIA_DEVICE_H

#include "collect/gpu_backend.h"
#include "collect/nvml.h"

enum {
    NVIDIA_PROCESSES_MAX = 256, // whose memory is summed; further ones are only counted
    NVIDIA_FIELDS_MAX = 8,
    NVIDIA_XID_BURST_MAX = 64, // events read per sample
};

struct nvidia_device {
    struct gpu_device *gpu; // its values
    nvml_device handle;
    nvml_device parent; // of a MIG instance; otherwise NULL
    unsigned mig_gpu_instance;
    nvml_events events;
    double xid_count, xid_last; // missing before the first event
    nvml_gpm_sample gpm[2];
    int gpm_newest; // index of the last sample; -1 = none
    int64_t gpm_taken_ns;
    struct nvml_gpm_get *gpm_get;
    bool field_off[NVIDIA_FIELDS_MAX];
    bool by_link[2]; // NVLink bytes, sent and received, are read link by link
    struct nvml_process processes[NVIDIA_PROCESSES_MAX];
    struct nvml_process_v1 processes_v1[NVIDIA_PROCESSES_MAX];
};

// Opens a GPU or, with its parent, a MIG instance; d->gpu is set. This call and the first sample
// find the missing functions. Close the device even after a failure.
int nvidia_device_open(const struct nvml *nvml, struct nvidia_device *d, nvml_device handle,
                       nvml_device parent);
void nvidia_device_close(const struct nvml *nvml, struct nvidia_device *d);

// Reads all available values into d->gpu->values. Returns NVML_SUCCESS if it got any,
// NVML_GPU_IS_LOST at once if a call returns it, otherwise the result of the last call.
int nvidia_device_sample(const struct nvml *nvml, struct nvidia_device *d);

#endif
