// machine.h - describes the hardware and system software of a run's first node, as the member
// "machine" of "about" (run_metadata.h):
//
//   { "kernel": "6.1.0-28-amd64", "system": "Debian GNU/Linux 12 (bookworm)",
//     "cpu": "AMD EPYC 9654 96-Core Processor", "gpus": [ "4 x NVIDIA H100 80GB HBM3" ],
//     "drivers": { "nvidia": "550.90.07" } }
//
// All facts come from files of the kernel, so sonde starts no program and opens no device. Unknown
// members are left out.
#ifndef SONDE_LAUNCH_MACHINE_H
#define SONDE_LAUNCH_MACHINE_H

#include <jansson.h>

enum {
    MACHINE_TEXT_MAX = 256, // bytes of a value
    MACHINE_GPUS_MAX = 64,
};

// `root`: the folder above /proc, /sys and /etc; "" for this machine. Returns a new reference; NULL
// without memory.
json_t *machine_describe(const char *root);

#endif
