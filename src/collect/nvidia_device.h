// nvidia_device.h - one NVIDIA GPU, or one MIG instance of it: its metrics and their current
// values.
//
// Used by one thread at a time, the GPU's own. Any call may block for as long as the driver likes.
#ifndef SONDE_COLLECT_NVIDIA_DEVICE_H
#define SONDE_COLLECT_NVIDIA_DEVICE_H

#include "collect/gpu_way.h"
#include "collect/nvml.h"

enum {
    NVIDIA_PROCESSES_MAX = 256, // whose memory is summed; more are counted only
    NVIDIA_FIELDS_MAX = 8,
    NVIDIA_XID_BURST_MAX = 64, // events taken a sample
};

struct nvidia_device {
    struct gpu_device *gpu; // its values
    nvml_device handle;
    nvml_device parent; // of a MIG instance; else NULL
    unsigned mig_gpu_instance;
    nvml_events events;
    double xid_count, xid_last; // missing while there was none
    nvml_gpm_sample gpm[2];
    int gpm_newest; // index of the last one taken; -1 = none
    int64_t gpm_taken_ns;
    struct nvml_gpm_get *gpm_get;
    bool field_off[NVIDIA_FIELDS_MAX];
    bool by_link[2]; // NVLink bytes, sent and received, are read link by link
    struct nvml_process processes[NVIDIA_PROCESSES_MAX];
    struct nvml_process_v1 processes_v1[NVIDIA_PROCESSES_MAX];
};

// Of a GPU or, with its parent, a MIG instance; d->gpu is set. What it lacks is found out here and
// by the first sample. Also one that failed is closed.
int nvidia_device_open(const struct nvml *nvml, struct nvidia_device *d, nvml_device handle,
                       nvml_device parent);
void nvidia_device_close(const struct nvml *nvml, struct nvidia_device *d);

// Reads all there is into d->gpu->values. NVML_SUCCESS when there is any; NVML_GPU_IS_LOST at once
// when some call says so; else what the last call said.
int nvidia_device_sample(const struct nvml *nvml, struct nvidia_device *d);

#endif
