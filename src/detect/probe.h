// probe.h - a small fixed piece of work, timed: how fast a GPU, or a processor's core, is right
// now.
//
// The same work for every device of a kind, so that their times can be compared (detect.h), some
// tens of milliseconds of it:
//
//   compute   chains of multiply-adds, as many as keep every unit busy: the clock, and who else computes
//   memory    a stretch of memory, larger than caches, read over and over: its speed, and who else reads
//
// Each is timed in several stretches, whose median counts: what comes and goes is not in it, what
// stays is. A stretch is longer than what a processor's or a GPU's scheduler gives to one program
// at a time, so that its share of the device is in it, too.
//
// To be called in a process of its own that ends soon after: a device's driver keeps memory for as
// long as a process uses it, and one that hangs can only be got rid of with its process
// (`sonde probe` does both). Nothing is kept on the device between probes.
#ifndef SONDE_DETECT_PROBE_H
#define SONDE_DETECT_PROBE_H

#include "base/error.h"

enum probe_kind { PROBE_CPU, PROBE_GPU };

enum { PROBE_NAME_MAX = 128, PROBE_UUID_MAX = 48 };

struct probe_result {
    double compute_s;
    double memory_s;                                 // NaN: there was no room for it on the device
    char name[PROBE_NAME_MAX], uuid[PROBE_UUID_MAX]; // empty where there are none
};

// How many devices of the kind this process can use, or a negative errno with words: -ENOENT when
// its library is not here. A driver that has been asked does not work in processes that are forked
// afterwards, so this is for a process of its own, too.
int probe_count(enum probe_kind kind, struct error *e);

// Device `index` of the kind, from 0. PROBE_CPU pins the process to that core. 0, or a negative
// errno with words: -EBUSY when it cannot be used now, though nothing is wrong with it (its memory
// is full, another program has it to itself).
int probe_run(enum probe_kind kind, int index, struct probe_result *out, struct error *e);

// probe_gpu.c
int probe_gpu_count(struct error *e);
int probe_gpu_run(int index, struct probe_result *out, struct error *e);

#endif
