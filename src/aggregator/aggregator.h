// aggregator.h - answers over HTTP, from a live job's folder or from recordings.
//
// It reads the *.sonde files directly (the reader is the same for live and closed files) and serves
// the faces: OpenTSDB (/api/…), native (/sonde/v1/…), /healthz.
#ifndef SONDE_AGGREGATOR_AGGREGATOR_H
#define SONDE_AGGREGATOR_AGGREGATOR_H

#include "faces/service.h"

// Nodes of the job that connect to us, so that all of them are asked (wire/hub.h).
struct aggregator_hub {
    const char *address;   // a number; NULL = all of this machine's
    int port;              // 0 = any that is free
    int fd;                // a socket that listens already, which we take over; 0 = none
    const char *key_file;  // wire_key_read
    const char *host;      // this node, as the others are called
    const char *expect;    // nodes that should be there, separated by commas; NULL = none
    const char *transport; // of their data (wire_bulk_open); NULL = tcp
};

struct aggregator_options {
    // files, or folders whose *.sonde are all taken (new ones as they appear)
    const char *const *paths;
    size_t path_count;
    const char *listen; // address; NULL = "127.0.0.1"
    int port;           // 0 = 4242, the next free one if taken
    bool port_exact;    // a taken port is an error
    // a socket that listens already, which we take over (listen.h); 0 = none: `listen` and `port`
    // say where
    int listen_fd;
    // The control token; the others follow from it (tokens.h). NULL = no protection: only on
    // loopback, only in tests.
    const char *token;
    bool open_view; // our own user's programs on this machine need no token to view (auth.h)
    // Programs of our own user may put points in the form of Dragon's clients, and nothing else is
    // answered: a server beside the job's, with `token` NULL.
    bool only_dragon_points;
    // aggregator_run starts such a server on this socket, of the loopback address; 0 = none
    int dragon_fd;
    const char *tls_cert, *tls_key; // PEM files, both or neither: HTTPS
    // origins whose pages may read the answers, separated by commas, or "*"; NULL = none
    const char *cors;
    const char *job;
    // of the job's agent, to which points are passed on; NULL = recordings, which take none
    const char *agent_socket;
    int level;
    int64_t window_ns; // queries answer with no points that are older; 0 = with all
    bool dragon_compatible;
    // recordings of any number of runs: folders in `paths` are looked through as well, "job" tells
    // runs apart, one has to be there
    bool replay;
    // times are shifted, by whole minutes, so that the last point lies within the last minute
    bool as_if_now;
    const char *dump_node,
        *dump_dir; // where a dump goes when nobody says where: a folder on a node that is reached by ssh; NULL = this node; NULL = nowhere
    metric_alias_fn *resolve_alias; // NULL = there are no built-in metrics
    metric_alias_at_fn *alias_at;   // NULL = none of them has another name
    service_run_fn *describe_run;   // NULL = nothing is known of runs
    // the job's launcher can start its command again, and hears of it on the control descriptor
    bool restarts;
    // what then is called, in a worker; aggregator_run sets it. NULL = nobody can
    service_reboot_fn *reboot;
    void *reboot_user;
    // the same for collectors, which any launcher of a job can start
    service_collector_fn *collector;
    void *collector_user;
    const struct aggregator_hub *hub; // NULL = our own files are all there is
    struct service_limits limits;
};

struct aggregator;
struct hub;

// Starts serving on threads of its own; returns when it listens.
int aggregator_start(const struct aggregator_options *options, struct aggregator **out,
                     struct error *e);
int aggregator_port(const struct aggregator *a);
void aggregator_stop(struct aggregator *a); // finishes what is being answered, frees a

struct hub *aggregator_hub(const struct aggregator *a); // NULL: without

// The process: aggregator_start, writes "ready PORT" (or "error TEXT") to control_fd, serves until
// SIGTERM, SIGINT or the end of control_fd. With a hub:
//
//   says   ready PORT HUBPORT
//          node HOST up        it has connected
//          node HOST lost      its connection has ended
//          reboot HOST,HOST    where it was told that the launcher restarts: the command is to be started again without these
//          fetched HOST PATH   its recording is here
//          unfetched HOST TEXT it could not be had
//          fetching BYTES      how much has come, about once a second while something does
//          collector NAME …    of a job with an agent, also without a hub (wire/collector_line.h)
//   takes  what told.h says: who should be there
//          fetch HOST DIR      its recording is to be copied into that folder; the node's agent has closed it
int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e);

#endif
