// aggregator_process.h - the aggregator as a child process, with the sockets that outlive an
// aggregator: those on which its HTTP server and its hub listen. So the job keeps its ports
// (http/listen.h).
//
// The owner polls child.control, reaps the child, and decides how often a new aggregator is
// started.
#ifndef SONDE_LAUNCH_AGGREGATOR_PROCESS_H
#define SONDE_LAUNCH_AGGREGATOR_PROCESS_H

#include "launch/child.h"
#include "launch/nodes.h"

struct launch_options;

// Settings for the aggregator's command line; all of them outlive the process.
struct aggregator_setup {
    const struct launch_options *options;
    const struct job *job;
    const struct nodes *nodes;
    const char *agent_socket, *token_file;
    const char *key_file;           // key of the hub; NULL: there are no other nodes
    const char *tls_cert, *tls_key; // absolute paths, because the aggregator changes its folder
};

struct aggregator_process {
    struct child child;
    int starts;                   // including failed ones
    int dragon_listening;         // -1: none
    int listening, hub_listening; // -1: none
};

void aggregator_process_init(struct aggregator_process *a);

// Starts an aggregator; the first call opens the listeners. Calls take(user, LINE) for each line
// that the aggregator writes once it is ready. Returns 0 or a negative errno with a message.
int aggregator_process_start(struct aggregator_process *a, const struct aggregator_setup *setup,
                             void (*take)(void *user, const char *line), void *user,
                             struct error *e);

// Call it when no aggregator runs and none will be started: from then on clients and nodes are
// refused.
void aggregator_process_refuse(struct aggregator_process *a);

// Closes the sockets; the child has ended.
void aggregator_process_free(struct aggregator_process *a);

#endif
