// simulate.h - `sonde simulate`: many virtual nodes on one machine, each with its own store and the
// real wire protocol, behind a real aggregator.
//
// Memory and disk: a node's file is at most simulated_file_bytes() (1 MiB and 8 KiB a metric: 1.8
// MiB with 100 metrics), most of it page cache; its reader, writer and connection take some 100
// KiB. So 1,000 nodes take at most 2 GiB of disk, and 10,000 at most 19 GiB. The page cache holds
// as much of it as there is free memory.
#ifndef SONDE_SIMULATE_SIMULATE_H
#define SONDE_SIMULATE_SIMULATE_H

#include "aggregator/aggregator.h"

#include <stddef.h>

enum { SIMULATE_NODES_MAX = 16384, SIMULATE_PARTS_MAX = 64 };

struct simulate_options {
    size_t nodes, metrics, fanout;
    double rate_s, history_s;
    uint64_t seed;
    bool quiet;
    struct aggregator_options serve; // listen, port, limits, …; simulate_run sets the other members
    char *const *command;            // ends with NULL; NULL or empty: run until Ctrl-C
};

// Returns the exit code: the command's, 0 after Ctrl-C, 1 with e set if it could not start.
int simulate_run(const struct simulate_options *options, struct error *e);

#endif
