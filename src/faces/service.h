// service.h - the state that all HTTP handlers share, and functions to read recorded data.
#ifndef SONDE_FACES_SERVICE_H
#define SONDE_FACES_SERVICE_H

#include "ask/reading.h"
#include "http/connections.h"
#include "http/routes.h"

#include <stdatomic.h>

// Called when a client requests a restart without these hosts: names separated by commas, or none.
typedef void service_reboot_fn(void *user, struct str hosts);

// Called when a client starts or stops a collector; `collector_line` is the text after the verb
// (wire/collector_line.h).
typedef void service_collector_fn(void *user, struct str collector_line);

// The launcher's description of the run that recorded a folder.
struct service_run {
    char *command;            // malloc'ed, quoted for a shell
    int64_t start_ns, end_ns; // end: 0 while the run continues
    int exit_code;            // of the command, after its end
    int level;
    char *host;  // malloc'ed: the node that it was started on; NULL: unknown
    char *about; // malloc'ed JSON, launch/run_metadata.h; NULL: nothing is known
};

// Reads the description of the run; returns false if the folder has none.
typedef bool service_run_fn(const char *folder, struct service_run *out);

// The names of the limits appear in error messages; 0 means the default in the comment.
struct service_limits {
    size_t body_bytes;   // of a request, also after inflating: 16 MiB (413)
    size_t header_bytes; // request line and headers: 32 KiB (431)
    // at a time: 256; above it, the connection that has been idle longest is closed
    unsigned connections;
    unsigned connections_per_client; // from one address: half of them, in the same way
    // limit for a connection without a complete request: 30 s, then it is closed
    int64_t idle_timeout_ns;
    int64_t query_deadline_ns; // 30 s (408)
    // 2 s: another node that has not answered a request by then is left out and listed as missing
    int64_t node_deadline_ns;
    size_t query_memory_bytes; // 256 MiB (413)
    size_t answer_bytes;       // 512 MiB (413)
    // of all running queries and answers: 1 GiB, at least query_memory_bytes (503)
    size_t total_memory_bytes;
    // number of queries that may run longer than slow_after_ns at the same time: 12; the next one
    // is ended (503)
    unsigned slow_queries;
    int64_t slow_after_ns; // 1 s
};

// The state for handlers. Constant after the start, except for the objects behind the pointers,
// which are thread-safe.
struct service {
    struct reading_from reads;
    const struct site *site; // of the HTTP server; NULL: no server (aggregator/embedded_server.h)
    struct connections *connections;
    struct workers *workers;
    struct memory_account memory; // used by requests and caches
    // the part for data that waits for slow clients of streams
    struct memory_account stream_memory;
    struct service_limits limits; // never 0
    service_run_fn *describe_run; // NULL: runs are unknown
    struct dump *dump;            // the current one
    // the destination of a dump that names none; empty: this node
    const char *dump_node, *dump_dir;
    struct str agent_socket; // NUL-terminated, empty for recordings
    int level;
    bool dragon_compatible;
    service_reboot_fn *reboot; // NULL: no launcher can restart the command
    void *reboot_user;
    service_collector_fn *collector; // NULL: no launcher can start collectors
    void *collector_user;
    int64_t started_ns;       // clock_monotonic_ns
    _Atomic unsigned streams; // number of open streams
    int64_t shift_ns;         // added to all times of recordings that are shown
};

// Returns the recorded time that is shown as `t_ns`. The ends of time stay unchanged.
static inline int64_t service_recorded_ns(const struct service *service, int64_t t_ns)
{
    int64_t recorded_ns;
    if (!__builtin_sub_overflow(t_ns, service->shift_ns, &recorded_ns))
        return recorded_ns;
    return service->shift_ns > 0 ? INT64_MIN : INT64_MAX;
}

// Does reading_open for a request, under the limits of the service, with the request's memory.
int service_read(struct service *service, struct request *r, int64_t until_ns, struct reading *out,
                 struct error *e);

// Does reading_close. Adds the missing nodes to *a (NULL: to nothing) as X-Sonde-Missing.
void service_read_end(struct reading *d, struct answer *a);

#endif
