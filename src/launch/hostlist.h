// hostlist.h - names of hosts: an ordered set, and Slurm's short notation for many of them.
//
//   list   = entry *("," entry)
//   entry  = 1*(text / "[" range *("," range) "]")          n[1-3,07,10-12]x[1-2]-ib,login
//   range  = number ["-" number]                     leading zeros of the first number set the
//                                                    width: [08-10] is 08 09 10
//
// An entry with several brackets gives all combinations; the last bracket counts fastest, as in
// Slurm.
#ifndef SONDE_LAUNCH_HOSTLIST_H
#define SONDE_LAUNCH_HOSTLIST_H

#include "base/error.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    HOSTS_MAX = 16384,         // hosts of one job
    HOST_NAME_MAX_BYTES = 255, // of one name (DNS)
    HOSTLIST_BRACKETS_MAX = 8, // in one entry
    HOSTLIST_DIGITS_MAX = 9,   // of one number in brackets
    // names of one list, repeated ones included
    HOSTLIST_NAMES_MAX = 4 * HOSTS_MAX,
    // size of a list or a file of hosts; HOSTS_MAX names of the greatest length fit
    HOSTLIST_BYTES_MAX = 1 << 22,
};

// Zero-initialise it; free it with hosts_free. Each name is owned and occurs once; the order is
// that of the first mentions.
struct hosts {
    char **names;
    size_t count, capacity;
    struct map known;
};
void hosts_free(struct hosts *h);

// Adds a name unless the set has it. Returns -EINVAL for a name that no host can have (empty, too
// long, a leading '-', bytes other than letters, digits and ".-_:"): names end up in the arguments
// of ssh and srun. -E2BIG past HOSTS_MAX.
int hosts_add(struct hosts *h, struct str name, struct error *e);

// The name's index, or -1.
ptrdiff_t hosts_find(const struct hosts *h, struct str name);

// Adds the names of the list. On failure, the names before the faulty part have been added.
int hostlist_parse(struct str list, struct hosts *out, struct error *e);

#endif
