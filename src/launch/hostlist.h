// hostlist.h - names of hosts: an ordered set, and Slurm's way of writing many of them short.
//
//   list   = entry *("," entry)
//   entry  = 1*(text / "[" range *("," range) "]")          n[1-3,07,10-12]x[1-2]-ib,login
//   range  = number ["-" number]                            a first number with leading zeros keeps its width: [08-10] is 08 09 10
//
// Brackets of one entry multiply, the last one counting fastest, as in Slurm.
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
    HOSTLIST_DIGITS_MAX = 9,   // of one number
    // that one list may give, counted with those that come again
    HOSTLIST_NAMES_MAX = 4 * HOSTS_MAX,
    HOSTLIST_BYTES_MAX = 1 << 22, // of a list or a file of hosts: every name at its longest
};

// Zero-initialise it; hosts_free when done. Names are owned, in the order of their first mention,
// each once.
struct hosts {
    char **names;
    size_t count, capacity;
    struct map known;
};
void hosts_free(struct hosts *h);

// Adds a name unless it is there. -EINVAL for one that no host can have (empty, too long, a leading
// '-', bytes other than letters, digits and ".-_:"): names end up in the arguments of ssh and srun.
// -E2BIG past HOSTS_MAX.
int hosts_add(struct hosts *h, struct str name, struct error *e);

// The name's index, or -1.
ptrdiff_t hosts_find(const struct hosts *h, struct str name);

// Adds what the list names. On failure what stood before the fault has been added.
int hostlist_parse(struct str list, struct hosts *out, struct error *e);

#endif
