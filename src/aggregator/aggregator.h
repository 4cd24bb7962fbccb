// aggregator.h - the HTTP server of a live job, or of recordings.
//
// It reads the *.sonde files directly (the reader is the same for live and closed files) and serves
// the faces: OpenTSDB (/api/…), native (/sonde/v1/…), /healthz.
#ifndef SONDE_AGGREGATOR_AGGREGATOR_H
#define SONDE_AGGREGATOR_AGGREGATOR_H

#include "faces/service.h"

// The hub, to which the other nodes of the job connect, so that requests reach all nodes
// (wire/hub.h).
struct aggregator_hub {
    const char *address;   // in digits; NULL = all addresses of this machine
    int port;              // 0 = any free port
    int fd;                // a listening socket to take over; 0 = none
    const char *key_file;  // wire_key_read
    const char *host;      // this node, in the form of the other nodes' names
    const char *expect;    // names of expected nodes, separated by commas; NULL = none
    const char *transport; // transport of the nodes' data (wire_bulk_open); NULL = tcp
};

struct aggregator_options {
    // files, or folders whose *.sonde files are all served (new ones as they appear)
    const char *const *paths;
    size_t path_count;
    const char *listen; // address; NULL = "127.0.0.1"
    int port;           // 0 = 4242, the next free one if taken
    bool port_exact;    // a taken port is an error
    // a listening socket to take over (listen.h); 0 = none: listen at `listen` and `port`
    int listen_fd;
    // The control token, from which the others are derived (tokens.h). NULL = no protection: only
    // on loopback, only in tests.
    const char *token;
    bool open_view; // programs of our own user on this machine need no token to view (auth.h)
    // A second server, with `token` NULL: it only accepts points that programs of our own user put
    // in the format of Dragon's clients.
    bool only_dragon_points;
    // aggregator_run starts such a server on this listening socket of the loopback address; 0 =
    // none
    int dragon_fd;
    const char *tls_cert, *tls_key; // PEM files, both or neither: HTTPS
    // origins whose pages may read the answers, separated by commas, or "*"; NULL = none
    const char *cors;
    const char *job;
    // socket of the job's agent, for put points; NULL = recordings, which accept none
    const char *agent_socket;
    int level;
    int64_t window_ns; // queries leave out older points; 0 = no limit
    bool dragon_compatible;
    // recordings of any number of runs: the folders within `paths` are searched, too, the tag "job"
    // distinguishes runs, and there has to be at least one recording
    bool replay;
    // shifts all times by whole minutes, so that the last point lies within the last minute
    bool as_if_now;
    // default target of dumps: a folder (NULL = none), on a node reached by ssh (NULL = this one)
    const char *dump_node, *dump_dir;
    metric_alias_fn *resolve_alias; // NULL = no built-in metrics
    metric_alias_at_fn *alias_at;   // NULL = no aliases
    service_run_fn *describe_run;   // NULL = runs are unknown
    // the job's launcher can restart its command; requests go to the control descriptor
    bool restarts;
    // called in a worker for a restart; aggregator_run sets it. NULL = not possible
    service_reboot_fn *reboot;
    void *reboot_user;
    // the same for collectors, which the launcher of any job can start
    service_collector_fn *collector;
    void *collector_user;
    const struct aggregator_hub *hub; // NULL = only our own files
    struct service_limits limits;
};

struct aggregator;
struct hub;

// Starts serving on threads of its own; returns as soon as it listens.
int aggregator_start(const struct aggregator_options *options, struct aggregator **out,
                     struct error *e);
int aggregator_port(const struct aggregator *a);
void aggregator_stop(struct aggregator *a); // finishes the current answers, then frees `a`

struct hub *aggregator_hub(const struct aggregator *a); // NULL: no hub

// The process: calls aggregator_start, writes "ready PORT" (or "error TEXT") to control_fd, and
// serves until SIGTERM, SIGINT or the end of control_fd. With a hub, the lines are:
//
//   says   ready PORT HUBPORT
//          node HOST up        it has connected
//          node HOST lost      its connection has ended
//          reboot HOST,HOST    a client requests a restart without these nodes (only if the
//                              launcher restarts commands)
//          fetched HOST PATH   the node's recording has been copied
//          unfetched HOST TEXT it could not be copied
//          fetching BYTES      the received bytes, about once a second during a transfer
//          collector NAME …    of a job with an agent, also without a hub (wire/collector_line.h)
//   takes  the lines of node_lines.h: the expected nodes
//          fetch HOST DIR      copy the node's recording, which its agent has closed, into DIR
int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e);

#endif
