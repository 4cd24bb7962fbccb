// aggregator.h - the HTTP server of a live job, or of recordings.
//
// It reads the *.sonde files directly (live and closed files have the same reader), and serves the
// faces: OpenTSDB (/api/…), native (/sonde/v1/…), /healthz.
#ifndef SONDE_AGGREGATOR_AGGREGATOR_H
#define SONDE_AGGREGATOR_AGGREGATOR_H

#include "faces/service.h"

// The hub, to which the other nodes of the job connect, so that requests reach all nodes
// (wire/hub.h).
struct aggregator_hub {
    const char *address;   // a numeric address; NULL = all addresses of this machine
    int port;              // 0 = any free port
    int fd;                // a listening socket to take over; 0 = none
    const char *key_file;  // file with the job's key (wire_key_read)
    const char *host;      // name of this node, as the other nodes write it
    const char *expect;    // names of expected nodes, separated by commas; NULL = none
    const char *transport; // transport of the nodes' data (wire_bulk_open); NULL = tcp
};

struct aggregator_options {
    // files, or folders; of a folder it serves all *.sonde files, also new ones
    const char *const *paths;
    size_t path_count;
    const char *listen; // address; NULL = "127.0.0.1"
    int port;           // 0 = 4242, or the next free port
    bool port_exact;    // if the port is taken, fail
    // a listening socket to take over (listen.h); 0 = none: listen at `listen` and `port`
    int listen_fd;
    // The control token, from which the other tokens are derived (tokens.h). NULL = no protection,
    // which is allowed only on loopback, and meant for tests.
    const char *token;
    bool open_view; // programs of our own user on this machine need no token to view (auth.h)
    // A second server, with `token` NULL: it only accepts points that programs of our own user put
    // in the format of Dragon's clients.
    bool only_dragon_points;
    // aggregator_run starts such a server on this listening socket of the loopback address; 0 =
    // none
    int dragon_fd;
    const char *tls_cert, *tls_key; // PEM files, both or neither; with them the server speaks HTTPS
    // origins whose pages may read the answers, separated by commas, or "*"; NULL = none
    const char *cors;
    const char *job;
    // socket of the job's agent, which stores put points; NULL = recordings, which accept none
    const char *agent_socket;
    int level;
    int64_t window_ns; // queries leave out older points; 0 = no limit
    bool dragon_compatible;
    // serve recordings of any number of runs: also search the folders within `paths`, give runs a
    // tag "job", and fail if there is no recording
    bool replay;
    // shift all times by whole minutes, such that the last point lies within the last minute
    bool as_if_now;
    // default target of dumps: dump_dir is a folder (NULL = none), dump_node the node that has it,
    // reached by ssh (NULL = this node)
    const char *dump_node, *dump_dir;
    metric_alias_fn *resolve_alias; // NULL = no built-in metrics
    metric_alias_at_fn *alias_at;   // NULL = no aliases
    service_run_fn *describe_run;   // NULL = runs are unknown
    // the job's launcher can restart its command; requests go to the control descriptor
    bool restarts;
    // called in a worker for a restart; aggregator_run sets it. NULL = restarts are not possible
    service_reboot_fn *reboot;
    void *reboot_user;
    // the same for collectors, which any job's launcher can start
    service_collector_fn *collector;
    void *collector_user;
    const struct aggregator_hub *hub; // NULL = only our own files
    struct service_limits limits;
};

struct aggregator;
struct hub;

// Starts serving on threads of its own. Returns when the server listens.
int aggregator_start(const struct aggregator_options *options, struct aggregator **out,
                     struct error *e);
int aggregator_port(const struct aggregator *a);
void aggregator_stop(struct aggregator *a); // finishes running answers, then frees `a`

struct hub *aggregator_hub(const struct aggregator *a); // NULL: no hub

// Runs the aggregator's process: calls aggregator_start, writes "ready PORT" (or "error TEXT") to
// control_fd, and serves until SIGTERM, SIGINT or the end of control_fd. With a hub, the lines are:
//
//   writes ready PORT HUBPORT
//          node HOST up        the node has connected
//          node HOST lost      its connection has ended
//          reboot HOST,HOST    a client requests a restart without these nodes (only if the
//                              launcher restarts commands)
//          fetched HOST PATH   the node's recording has been copied
//          unfetched HOST TEXT the recording could not be copied
//          fetching BYTES      number of received bytes, about once a second during a transfer
//          collector NAME …    of a job with an agent, also without a hub (wire/collector_line.h)
//   reads  the lines of node_lines.h: the expected nodes
//          fetch HOST DIR      copy the node's recording into DIR; its agent has closed the file
int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e);

#endif
