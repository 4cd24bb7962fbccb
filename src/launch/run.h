// run.h - the life of a job: what `sonde run` does.
//
//   nodes found ─▶ folders checked and made ─▶ agent, aggregator and the agents of the other nodes started, side by side ─▶ all ready
//   ─▶ the command ─▶ it ends (and may be started again: restart.h) ─▶ agents and aggregator end ─▶ summary ─▶ recording kept ─▶ run folder removed
//
// With other nodes the aggregator listens for them (its hub): each has a `sonde relay`, which is told where by its `sonde node` and knows the job's key.
// Once it is ready, the aggregator may say on its control descriptor: "reboot HOST,HOST" (start the command again without these nodes; the list may be empty), and
// "collector …" (wire/collector_line.h): handed on to all agents, and kept for those that come later.
//
// A failure of telemetry never stops the command: one line says what failed and what is lost, and the
// command runs with the remaining telemetry, or without any (plain.h). With --strict the command does
// not run then. After a wrong option it does not run either, because the user can mend that. The
// launcher replaces an agent that dies, and the new one appends to the same file.
#ifndef SONDE_LAUNCH_RUN_H
#define SONDE_LAUNCH_RUN_H

#include "base/error.h"
#include "launch/nodes.h"
#include "launch/runs.h"

#include <stdbool.h>
#include <stdint.h>

struct launch_options {
    char *const *command; // ends with NULL, not empty
    const char *title;    // what people are shown in its place; NULL: the command
    int level;            // 0..4; 0: the command and nothing else
    double rate_s;
    const char *scripts; // commands that print points, one a line (agent/scripts.h); they run where we do; NULL = none
    const char *sources; // of node metrics, and their rates (collect_check_sources); NULL = all
    double window_s;
    int dragon_port; // where programs for Dragon put points; 0 = nowhere
    uint64_t size_limit_bytes;
    int port, udp_port;
    const char *listen;
    const char *run_dir; // parent of the run folders; NULL = $TMPDIR, else /tmp
    const char *config;  // file that the options came from; NULL = none. Told to the command
    const char *record;  // folder for the recording; NULL = among the kept runs
    const char *runs;    // where those are; NULL = the default
    struct runs_limits runs_limits;
    bool keep; // the recording is never removed to make room
    bool no_record;
    bool dragon_compatible;
    bool open_view;                   // over HTTP, our own user's programs on this machine need no token to view
    const char *auth_key;             // the control token that the configuration file holds; "" = none
    bool open_hub;                    // nodes that we do not start may join; the command is told the port
    const char *tunnel_node;          // whose port leads to the HTTP server (tunnel.h); NULL = none
    int tunnel_port;                  // 0 = the server's own
    const char *dump_node, *dump_dir; // where `sonde dump` puts its files; NULL = not said
    const char *cors;                 // origins whose pages may read over HTTP; NULL: none
    const char *token_file; // with the control token; made when it is not there; NULL = a token for this job alone
    const char *tls_cert, *tls_key; // the HTTP server speaks TLS; both or neither
    uint64_t query_memory_bytes;    // limits of the HTTP server
    uint64_t aggregator_memory_bytes;
    uint64_t agent_memory_bytes; // of each node's agent
    double query_deadline_s, node_deadline_s;
    int connections;
    bool quiet, verbose;
    double stop_timeout_s;
    struct nodes_options nodes;
};

enum {
    LAUNCH_START_TIMEOUT_MS = 10000, // for agent and aggregator to say "ready"
    LAUNCH_GAVE_UP = 1,              // the command was stopped and cannot be started again
    LAUNCH_FAILED = 1,               // --strict, and telemetry cannot start
    LAUNCH_WRONG_OPTION = 2,
    LAUNCH_NOT_EXECUTABLE = 126,
    LAUNCH_NOT_FOUND = 127,
    LAUNCH_SIGNALLED = 128,
};

// Returns the command's exit code. LAUNCH_FAILED, LAUNCH_WRONG_OPTION: nothing was started, and e says
// why. e->code is 0 if there is no message.
int launch_run(const struct launch_options *options, struct error *e);

#endif
