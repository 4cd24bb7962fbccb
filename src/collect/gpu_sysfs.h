// gpu_sysfs.h - one AMD or Intel GPU in /sys. The backends with a library use it to complete their
// metrics.
#ifndef SONDE_COLLECT_GPU_SYSFS_H
#define SONDE_COLLECT_GPU_SYSFS_H

#include "collect/gpu_backend.h"

struct sysfs_gpu;

// The GPU at a PCI address ("0000:c1:00.0"); NULL if it does not exist, or its driver has no files.
// May block.
struct sysfs_gpu *sysfs_gpu_at(const char *root, const char *address);
void sysfs_gpu_close(struct sysfs_gpu *gpu); // NULL is allowed

// Marks the rows that the GPU has as available.
void sysfs_gpu_offer(const struct sysfs_gpu *gpu, struct gpu_device *d);

// Fills rows that are still missing. Returns false if the GPU has no values.
bool sysfs_gpu_fill(struct sysfs_gpu *gpu, struct gpu_device *d);

// amdgpu_metrics.c: the same from the table of an amdgpu driver (device/gpu_metrics), whose layout
// has a version. Unknown versions fill nothing.
bool amdgpu_metrics_fill(const unsigned char *table, size_t size, struct gpu_device *d);

#endif
