// aggregator.h - answers over HTTP, from a live job's folder or from recordings.
//
// It reads the *.sonde files directly (the reader is the same for live and closed files) and serves the faces: OpenTSDB
// (/api/…), native (/sonde/v1/…), /healthz.
#ifndef SONDE_AGGREGATOR_AGGREGATOR_H
#define SONDE_AGGREGATOR_AGGREGATOR_H

#include "base/error.h"
#include "store/read.h"

// `name` is that of a built-in metric, or another name of it. Returns its name in stores; empty: no metric has that name.
// A built-in metric without series is answered with nothing; any other name without series is refused.
typedef struct str aggregator_alias_fn(struct str name);

// The index-th of the other names, and the built-in metric that it names. False: there are fewer.
typedef bool aggregator_alias_at_fn(size_t index, struct str *alias, struct str *metric);

// Somebody asks for a restart without these hosts: names separated by commas, or none.
typedef void aggregator_reboot_fn(void *user, struct str hosts);

// Somebody asks for a collector, or for its end: what stands behind the verb (wire/collector_line.h).
typedef void aggregator_collector_fn(void *user, struct str wanted);

// What the launcher wrote about the run whose files lie in a folder.
struct aggregator_run {
    char *command;            // malloc'ed, as a shell would take it
    int64_t start_ns, end_ns; // end: 0 while it runs
    int exit_code;            // of the command, once it has ended
    int level;
};

// False: nothing is known of a run in this folder.
typedef bool aggregator_run_fn(const char *folder, struct aggregator_run *out);

// Each limit has a name, which errors give; 0 takes the default that stands behind it.
struct aggregator_limits {
    size_t body_bytes;               // of a request, also after inflating: 16 MiB (413)
    size_t header_bytes;             // request line and headers: 32 KiB (431)
    unsigned connections;            // at a time: 256; past it the one that has been idle longest makes room
    unsigned connections_per_client; // from one address: half of them, likewise
    int64_t idle_timeout_ns;         // without a whole request: 30 s, then the connection is closed
    int64_t query_deadline_ns;       // 30 s (408)
    int64_t node_deadline_ns;        // 2 s: another node that has not answered a question by then is left out and named
    size_t query_memory_bytes;       // 256 MiB (413)
    size_t answer_bytes;             // 512 MiB (413)
    size_t total_memory_bytes;       // of all queries and answers under way: 1 GiB, at least query_memory_bytes (503)
    unsigned slow_queries;           // that may take longer than slow_after_ns at a time: 12; one more is ended (503)
    int64_t slow_after_ns;           // 1 s
};

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
    const char *const *paths; // files, or folders whose *.sonde are all taken (new ones as they appear)
    size_t path_count;
    const char *listen; // address; NULL = "127.0.0.1"
    int port;           // 0 = 4242, the next free one if taken
    bool port_exact;    // a taken port is an error
    int listen_fd; // a socket that listens already, which we take over (listen.h); 0 = none: `listen` and `port` say where
    // The control token; the others follow from it (tokens.h). NULL = no protection: only on loopback, only in tests.
    const char *token;
    bool open_view; // our own user's programs on this machine need no token to view (auth.h)
    // Programs of our own user may put points in the form of Dragon's clients, and nothing else is answered: a server beside the
    // job's, with `token` NULL.
    bool only_dragon_points;
    int dragon_fd; // aggregator_run starts such a server on this socket, of the loopback address; 0 = none
    const char *tls_cert, *tls_key; // PEM files, both or neither: HTTPS
    const char *cors; // origins whose pages may read the answers, separated by commas, or "*"; NULL = none
    const char *job;
    const char *agent_socket; // of the job's agent, to which points are passed on; NULL = recordings, which take none
    int level;
    int64_t window_ns; // queries answer with no points that are older; 0 = with all
    bool dragon_compatible;
    bool
        replay; // recordings of any number of runs: folders in `paths` are looked through as well, "job" tells runs apart, one has to be there
    bool as_if_now; // times are shifted, by whole minutes, so that the last point lies within the last minute
    const char *dump_node,
        *dump_dir; // where a dump goes when nobody says where: a folder on a node that is reached by ssh; NULL = this node; NULL = nowhere
    aggregator_alias_fn *resolve_alias; // NULL = there are no built-in metrics
    aggregator_alias_at_fn *alias_at;   // NULL = none of them has another name
    aggregator_run_fn *describe_run;    // NULL = nothing is known of runs
    bool restarts; // the job's launcher can start its command again, and hears of it on the control descriptor
    aggregator_reboot_fn *reboot; // what then is called, in a worker; aggregator_run sets it. NULL = nobody can
    void *reboot_user;
    aggregator_collector_fn *collector; // the same for collectors, which any launcher of a job can start
    void *collector_user;
    const struct aggregator_hub *hub; // NULL = our own files are all there is
    struct aggregator_limits limits;
};

struct aggregator;
struct hub;

// Starts serving on threads of its own; returns when it listens.
int aggregator_start(const struct aggregator_options *options, struct aggregator **out, struct error *e);
int aggregator_port(const struct aggregator *a);
void aggregator_stop(struct aggregator *a); // finishes what is being answered, frees a

struct hub *aggregator_hub(const struct aggregator *a); // NULL: without

// The process: aggregator_start, writes "ready PORT" (or "error TEXT") to control_fd, serves until SIGTERM, SIGINT or the end of control_fd. With a hub:
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
