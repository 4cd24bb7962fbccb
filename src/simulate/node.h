// node.h - a simulated node: a store like an agent's, its values, and the source for its link's
// answers. It has no processes and no sockets.
#ifndef SONDE_SIMULATE_NODE_H
#define SONDE_SIMULATE_NODE_H

#include "ask/question.h"
#include "simulate/values.h"

enum {
    SIMULATED_HOST_MAX = 16,
    SIMULATED_FILE_BYTES = 1 << 20,   // maximum size of a node's file,
    SIMULATED_METRIC_BYTES = 8 << 10, // plus this many per metric
    SIMULATED_TICK_EACH = 8,          // samples between two ticks of a store
};

struct simulated_node {
    size_t number;
    char host[SIMULATED_HOST_MAX]; // "n00017"
    char *path;                    // owned by the node
    struct store *store;
    struct store_reader *reader;
    uint32_t set;
    uint64_t samples;
};

static inline uint64_t simulated_file_bytes(size_t metrics)
{
    return SIMULATED_FILE_BYTES + (uint64_t)metrics * SIMULATED_METRIC_BYTES;
}

// Makes FOLDER/HOST.sonde and fills it with samples every interval_ns, from from_ns on, before
// to_ns. On failure it removes the file.
int simulated_node_make(struct simulated_node *n, const char *folder, size_t number,
                        const struct simulated_metrics *metrics, const char *job,
                        int64_t interval_ns, int64_t from_ns, int64_t to_ns, struct error *e);

// Appends one more sample. `row` has room for the metrics' values.
void simulated_node_sample(struct simulated_node *n, const struct simulated_metrics *metrics,
                           int64_t start_ns, int64_t t_ns, double *row);

// Closes the node, and removes its file.
void simulated_node_remove(struct simulated_node *n);

// The source of a link's answers: the node's current file.
struct wire_source simulated_node_source(struct simulated_node *n);

void simulated_host(size_t number, char out[SIMULATED_HOST_MAX]);

#endif
