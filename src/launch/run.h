// run.h - the options of a run.
#ifndef SONDE_LAUNCH_RUN_H
#define SONDE_LAUNCH_RUN_H

#include "launch/codes.h"
#include "launch/nodes.h"
#include "launch/runs.h"

#include <stdbool.h>
#include <stdint.h>

struct launch_options {
    char *const *command; // ends with NULL; not empty
    const char *title;    // shown to people instead of the command; NULL: the command
    // checked (run_metadata.h); `tags`: one KEY=VALUE a line; each may be NULL
    const char *name, *note, *tags;
    int level; // 0..4; 0: the command without telemetry
    double rate_s;
    const char *trace;        // tracers to load into the command (trace.h), checked; NULL = none
    const char *trace_python; // functions that the tracer of Python records; NULL: its default
    // commands that run on this node and print points, one a line (agent/scripts.h); NULL = none
    const char *scripts;
    const char *sources; // of node metrics, and their rates (collect_check_sources); NULL = all
    double window_s;
    int dragon_port; // port for points from programs for Dragon; 0 = none
    uint64_t size_limit_bytes;
    int port, udp_port;
    const char *listen;
    const char *run_dir; // parent of the run folders; NULL = $TMPDIR, else /tmp
    // the configuration file of the options, passed to the command; NULL = none
    const char *config;
    const char *record; // folder for the recording; NULL = among the kept runs
    const char *runs;   // the folder of the kept runs; NULL = the default
    struct runs_limits runs_limits;
    bool keep; // never removed to make room
    bool no_record;
    bool dragon_compatible;
    // programs of the same user on this machine may read over HTTP without a token
    bool open_view;
    const char *auth_key; // the control token of the configuration file; "" = none
    // nodes that the launcher does not start may join; the command gets the port
    bool open_hub;
    // a node on which a port leads to the HTTP server (tunnel.h); NULL = none
    const char *tunnel_node;
    int tunnel_port; // 0 = the server's own
    // node and folder for the files of `sonde dump`; NULL = not given
    const char *dump_node, *dump_dir;
    const char *cors; // origins whose pages may read over HTTP; NULL: none
    // a file with the control token, created if missing; NULL = a token for this job alone
    const char *token_file;
    const char *tls_cert, *tls_key; // certificate and key of the HTTP server's TLS; both or neither
    uint64_t query_memory_bytes;    // limits of the HTTP server
    uint64_t aggregator_memory_bytes;
    uint64_t agent_memory_bytes; // of each node's agent
    double query_deadline_s, node_deadline_s;
    int connections;
    bool quiet, verbose;
    bool no_report; // without the lines of `sonde report` at the end
    double stop_timeout_s;
    struct nodes_options nodes;
};

#endif
