// service.h - what the handlers of all faces work on, and how they read what is recorded.
#ifndef SONDE_FACES_SERVICE_H
#define SONDE_FACES_SERVICE_H

#include "ask/reading.h"
#include "http/connections.h"
#include "http/routes.h"

#include <stdatomic.h>

// Somebody asks for a restart without these hosts: names separated by commas, or none.
typedef void service_reboot_fn(void *user, struct str hosts);

// Somebody asks for a collector, or for its end: what stands behind the verb
// (wire/collector_line.h).
typedef void service_collector_fn(void *user, struct str wanted);

// What the launcher wrote about the run whose files lie in a folder.
struct service_run {
    char *command;            // malloc'ed, as a shell would take it
    int64_t start_ns, end_ns; // end: 0 while it runs
    int exit_code;            // of the command, once it has ended
    int level;
    char *host;  // malloc'ed: the node that it was started on; NULL: unknown
    char *about; // malloc'ed JSON, launch/about.h; NULL: nothing is known
};

// False: nothing is known of a run in this folder.
typedef bool service_run_fn(const char *folder, struct service_run *out);

// Each limit has a name, which errors give; 0 takes the default that stands behind it.
struct service_limits {
    size_t body_bytes;   // of a request, also after inflating: 16 MiB (413)
    size_t header_bytes; // request line and headers: 32 KiB (431)
    // at a time: 256; past it the one that has been idle longest makes room
    unsigned connections;
    unsigned connections_per_client; // from one address: half of them, likewise
    int64_t idle_timeout_ns;         // without a whole request: 30 s, then the connection is closed
    int64_t query_deadline_ns;       // 30 s (408)
    // 2 s: another node that has not answered a question by then is left out and named
    int64_t node_deadline_ns;
    size_t query_memory_bytes; // 256 MiB (413)
    size_t answer_bytes;       // 512 MiB (413)
    // of all queries and answers under way: 1 GiB, at least query_memory_bytes (503)
    size_t total_memory_bytes;
    // that may take longer than slow_after_ns at a time: 12; one more is ended (503)
    unsigned slow_queries;
    int64_t slow_after_ns; // 1 s
};

// What handlers may use. Constant after the start, except what is behind the pointers
// (thread-safe).
struct service {
    struct reading_from reads;
    const struct site *site; // that serves us; NULL: none does (aggregator/inside.h)
    struct connections *connections;
    struct workers *workers;
    struct memory_account memory;        // of requests and of what is kept for the next ones
    struct memory_account stream_memory; // of it: what waits for clients that follow a stream
    struct service_limits limits;        // no zeros
    service_run_fn *describe_run;        // NULL: nothing is known of runs
    struct dump *dump;                   // the one that is being made
    // the destination of a dump that names none; empty: this node
    const char *dump_node, *dump_dir;
    struct str agent_socket; // NUL-terminated, empty for recordings
    int level;
    bool dragon_compatible;
    service_reboot_fn *reboot; // NULL: the command cannot be started again
    void *reboot_user;
    service_collector_fn *collector; // NULL: nobody can start any
    void *collector_user;
    int64_t started_ns;       // clock_monotonic_ns
    _Atomic unsigned streams; // open now
    int64_t shift_ns;         // recordings are shown so much later than they were made
};

// The time of a recording that is shown as `t_ns`. At the ends of time it stays there.
static inline int64_t service_recorded_ns(const struct service *service, int64_t t_ns)
{
    int64_t recorded_ns;
    if (!__builtin_sub_overflow(t_ns, service->shift_ns, &recorded_ns))
        return recorded_ns;
    return service->shift_ns > 0 ? INT64_MIN : INT64_MAX;
}

// reading_open for a request: under the limits of the service, with the request's memory.
int service_read(struct service *service, struct request *r, int64_t until_ns, struct reading *out,
                 struct error *e);

// reading_close; names in *a (NULL: nowhere) the nodes that were missing: X-Sonde-Missing.
void service_read_end(struct reading *d, struct answer *a);

#endif
