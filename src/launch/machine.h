// machine.h - the hardware and the software below a run, of the first node. The member "machine" of
// "about" (run_metadata.h):
//
//   { "kernel": "6.1.0-28-amd64", "system": "Debian GNU/Linux 12 (bookworm)",
//     "cpu": "AMD EPYC 9654 96-Core Processor", "gpus": [ "4 x NVIDIA H100 80GB HBM3" ],
//     "drivers": { "nvidia": "550.90.07" } }
//
// All of it is read from files of the kernel, so nothing is started and no device is opened. A
// member that is not known is missing.
#ifndef SONDE_LAUNCH_MACHINE_H
#define SONDE_LAUNCH_MACHINE_H

#include <jansson.h>

enum {
    MACHINE_TEXT_MAX = 256, // bytes of a value
    MACHINE_GPUS_MAX = 64,
};

// `root`: the folder that /proc, /sys and /etc are in; "" for those of this machine. A new
// reference; NULL: no memory.
json_t *machine_describe(const char *root);

#endif
