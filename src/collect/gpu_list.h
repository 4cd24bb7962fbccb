// gpu_list.h - the list of GPUs, and the variable that limits a process to one of them.
#ifndef SONDE_COLLECT_GPU_LIST_H
#define SONDE_COLLECT_GPU_LIST_H

#include "base/str.h"

enum {
    GPU_LIST_MAX = 64,
    GPU_LIST_LINE_MAX = 256,
};

// Calls the drivers in a thread of its own, because they may block. Returns a descriptor to read
// from, or a negative errno. It delivers one line per GPU of any make, and then the end of the
// file:
//
//   INDEX VARIABLE=VALUE        0 CUDA_VISIBLE_DEVICES=GPU-8f1…
//
// INDEX is the tag `gpu` of its metrics. The caller may close the descriptor early.
//
// If the environment has SONDE_PROBE_DEVICES (cpu:0,cpu:1), these devices stand in for the GPUs,
// and no driver is loaded: "0 SONDE_PROBE_DEVICE=cpu:0".
#define GPU_LIST_VIRTUAL "SONDE_PROBE_DEVICES"
int gpu_list_open(const char *root);

#endif
