// probe.h - times a small fixed piece of work to measure the current speed of a GPU, or of a
// processor's core.
//
// The work is the same for every device of a kind, so that their times are comparable (detect.h).
// It takes some tens of milliseconds:
//
//   compute   chains of multiply-adds, enough to keep every unit busy: shows the clock, and other
//             computing programs
//   memory    an array, larger than the caches, read repeatedly: shows the memory's speed, and
//             other programs that read
//
// Each is timed in several stretches, whose median counts: it excludes passing disturbances and
// includes lasting ones. A stretch is longer than a scheduler's time slice on a processor or GPU,
// so that it also shows the probe's share of the device.
//
// Call it in a process of its own that ends soon after: a device's driver keeps memory while a
// process uses it, and only ending the process ends a hanging call (`sonde probe` does both).
// Nothing stays on the device between probes.
#ifndef SONDE_DETECT_PROBE_H
#define SONDE_DETECT_PROBE_H

#include "base/error.h"

enum probe_kind { PROBE_CPU, PROBE_GPU };

enum { PROBE_NAME_MAX = 128, PROBE_UUID_MAX = 48 };

struct probe_result {
    double compute_s;
    double memory_s;                                 // NaN: the device had no room for it
    char name[PROBE_NAME_MAX], uuid[PROBE_UUID_MAX]; // empty if the device has none
};

// The number of devices of the kind that this process can use, or a negative errno with a message:
// -ENOENT if its library is not installed. After this call the driver does not work in processes
// forked later, so make this call, too, in a process of its own.
int probe_count(enum probe_kind kind, struct error *e);

// Probes device `index` of the kind, counted from 0. PROBE_CPU pins the process to that core.
// Returns 0, or a negative errno with a message: -EBUSY for an intact device that is unavailable
// now (its memory is full, another program uses it exclusively).
int probe_run(enum probe_kind kind, int index, struct probe_result *out, struct error *e);

// probe_gpu.c
int probe_gpu_count(struct error *e);
int probe_gpu_run(int index, struct probe_result *out, struct error *e);

#endif
