// nvidia_device.h - one NVIDIA GPU, or one MIG instance of it: which metrics it has and what they are now.
//
// Used by one thread at a time, the GPU's own. Any call may block for as long as the driver likes.
#ifndef SONDE_COLLECT_NVIDIA_DEVICE_H
#define SONDE_COLLECT_NVIDIA_DEVICE_H

#include "collect/catalogue.h"
#include "collect/nvml.h"

enum {
    GPU_ROW_FIRST = METRIC_GPU_UP, // the catalogue's rows of one GPU, in the catalogue's order
    GPU_ROWS = METRIC_GPU_FP16_ACTIVE + 1 - GPU_ROW_FIRST,
    NVIDIA_PROCESSES_MAX = 256, // whose memory is summed; more are counted only
    NVIDIA_XID_BURST_MAX = 64,  // events taken a sample
};

struct nvidia_device {
    nvml_device handle;
    nvml_device parent; // of a MIG instance; else NULL
    unsigned mig_gpu_instance;
    char uuid[NVML_UUID_SIZE];
    char mig[12]; // "" or the instance's index in its GPU

    bool off[GPU_ROWS];      // asked for once and never to be had
    bool listed[GPU_ROWS];   // not off after the first sample: gets a series; then constant
    double values[GPU_ROWS]; // by row - GPU_ROW_FIRST
    int16_t place[GPU_ROWS]; // of each row's series in the set, -1 = none; the sampling thread's

    nvml_events events;
    double xid_count, xid_last; // missing while there was none
    nvml_gpm_sample gpm[2];
    int gpm_newest; // index of the last one taken; -1 = none
    int64_t gpm_taken_ns;
    struct nvml_gpm_get *gpm_get;
    struct nvml_process processes[NVIDIA_PROCESSES_MAX];
};

// Of a GPU or, with its parent, a MIG instance. What it lacks is found out here and by the first sample.
int nvidia_device_open(const struct nvml *nvml, struct nvidia_device *d, nvml_device handle, nvml_device parent);
void nvidia_device_close(const struct nvml *nvml, struct nvidia_device *d);

// Reads all there is into d->values; the rest is missing. NVML_SUCCESS when there is any; NVML_GPU_IS_LOST at once when some call says so;
// else what the last call said.
int nvidia_device_sample(const struct nvml *nvml, struct nvidia_device *d);

#endif
