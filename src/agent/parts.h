// parts.h - the parts of an agent beside its event loop: names, sockets, the store, ingest and the
// sampler of node metrics. Each part needs the parts before it. So they are opened in this order
// and closed in the reverse order.
#ifndef SONDE_AGENT_PARTS_H
#define SONDE_AGENT_PARTS_H

#include "agent/agent_options.h"
#include "agent/keeper.h"
#include "agent/recorded.h"
#include "agent/sampler.h"
#include "agent/self_metrics.h"
#include "ingest/ingest.h"

#include <limits.h>

enum { PARTS_HOST_MAX = 256 };

struct parts {
    const struct agent_options *options;
    char host[PARTS_HOST_MAX], socket_path[PATH_MAX], file_path[PATH_MAX];
    struct store_label labels[1];
    double rate_s;
    int listening, abstract, udp; // -1 = none, or `connections` has taken them over

    struct store *store;
    struct recorded *recorded;
    struct keeper program_keeper;
    struct ingest *ingest;
    struct collect *collect;
    struct sampler *sampler;
    struct self_metrics *own;
    struct self_metrics_figures figures;
    bool moved;     // the file was moved to the other folder, or cannot be moved there
    bool reachable; // this agent has made the socket's name, and must remove it
};

// Initialises the parts; none is open yet. From here on parts_close may be called.
void parts_init(struct parts *p, const struct agent_options *options);

// The sampler calls `wake` in its own thread when it has rows (sampler.h). Returns 0, or a negative
// errno with e set; parts that are already open stay open until parts_close.
int parts_open(struct parts *p, void (*wake)(void *user), void *user, struct error *e);

// Moves the file to the other folder when the run folder has no space for new data.
void parts_make_space(struct parts *p);

void parts_stop_sampling(struct parts *p);

// Returns 0, or a negative errno with e set if the store could not be closed.
int parts_close(struct parts *p, struct error *e);

#endif
