// gpu_list.h - which GPUs there are, and how a process is told to use one of them only.
#ifndef SONDE_COLLECT_GPU_LIST_H
#define SONDE_COLLECT_GPU_LIST_H

#include "base/str.h"

enum {
    GPU_LIST_MAX = 64,
    GPU_LIST_LINE_MAX = 256,
};

// Asks the drivers in a thread of its own, as they may block. Returns a descriptor to read from, or a negative errno. On it stands a line for each GPU, of whatever
// make, and then its end:
//
//   INDEX VARIABLE=VALUE        0 CUDA_VISIBLE_DEVICES=GPU-8f1…
//
// INDEX is the tag `gpu` of its metrics. A make of which there is none has no line. Who closes the descriptor earlier hears nothing more.
int gpu_list_open(const char *root);

#endif
