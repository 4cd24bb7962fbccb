// node.h - a simulated node: a store as an agent's, its values, and what a relay answers from. No
// processes, no sockets.
#ifndef SONDE_SIMULATE_NODE_H
#define SONDE_SIMULATE_NODE_H

#include "ask/question.h"
#include "simulate/values.h"

enum {
    SIMULATED_HOST_MAX = 16,
    SIMULATED_FILE_BYTES = 1 << 20,   // most of a node's file,
    SIMULATED_METRIC_BYTES = 8 << 10, // and for each metric so much more
    SIMULATED_TICK_EACH = 8,          // samples between two rounds of a store's own work
};

struct simulated_node {
    size_t number;
    char host[SIMULATED_HOST_MAX]; // "n00017"
    char *path;                    // owned
    struct store *store;
    struct store_reader *reader;
    uint32_t set;
    uint64_t samples;
};

static inline uint64_t simulated_file_bytes(size_t metrics)
{
    return SIMULATED_FILE_BYTES + (uint64_t)metrics * SIMULATED_METRIC_BYTES;
}

// Makes FOLDER/HOST.sonde and fills it with samples every interval_ns from from_ns until before
// to_ns. On failure what was made is removed.
int simulated_node_make(struct simulated_node *n, const char *folder, size_t number,
                        const struct simulated_metrics *metrics, const char *job,
                        int64_t interval_ns, int64_t from_ns, int64_t to_ns, struct error *e);

// One more sample. `row` has room for the metrics' values.
void simulated_node_sample(struct simulated_node *n, const struct simulated_metrics *metrics,
                           int64_t start_ns, int64_t t_ns, double *row);

// Its file goes, too.
void simulated_node_remove(struct simulated_node *n);

// What a link answers from: the node's file as it is when it is asked.
struct wire_source simulated_node_source(struct simulated_node *n);

void simulated_host(size_t number, char out[SIMULATED_HOST_MAX]);

#endif
