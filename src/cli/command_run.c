#include "base/clock.h"
#include "base/log.h"
#include "cli/commands.h"
#include "launch/allocation.h"
#include "launch/launcher.h"
#include "launch/trace.h"
#include "wire/bulk.h"

#include <errno.h>

enum { DRAGON_PORT = 4243 };

// Checks combinations of options.
static int check_together(const struct options *o, struct error *e)
{
    const char *dump_dir = options_text(o, OPT_DUMP_DIR);
    // Of two contradicting options, the one with the higher priority counts: flag, then
    // environment, then file.
    if (options_flag(o, OPT_NO_RECORD) && options_text(o, OPT_RECORD) &&
        o->value[OPT_NO_RECORD].source == o->value[OPT_RECORD].source)
        return error_set(e, -EINVAL, "--record and --no-record contradict each other");
    if (options_flag(o, OPT_EXHAUST) && !options_flag(o, OPT_RESILIENT))
        return error_set(e, -EINVAL, "--exhaust-resources needs --resilient");
    if (dump_dir ? dump_dir[0] != '/' : options_text(o, OPT_DUMP_NODE) != NULL)
        return error_set(e, -EINVAL, "a dump needs a folder: --dump-dir DIR, an absolute path");
    if (options_int(o, OPT_REMOTE_TUNNEL_PORT) && !options_text(o, OPT_REMOTE_TUNNEL_NODE))
        return error_set(e, -EINVAL, "a tunnel needs another end: --remote-tunnel-node NODE");
    if (options_flag(o, OPT_OPEN_VIEW) && options_text(o, OPT_REMOTE_TUNNEL_NODE))
        return error_set(e, -EINVAL,
                         "--view-without-token and --remote-tunnel-node: every user of that node "
                         "could read; give Grafana "
                         "the URL that sonde token --url prints");
    if (trace_check(options_text(o, OPT_TRACE), e) < 0)
        return e->code;
    return wire_transport_check(options_text(o, OPT_TRANSPORT), e);
}

// Returns the port. --dragon-compatible opens Dragon's port, unless another option sets the port.
static int dragon_port(const struct options *o)
{
    bool own =
        options_flag(o, OPT_DRAGON_COMPATIBLE) && o->value[OPT_TSDB_PORT].source == FROM_DEFAULT;
    return own ? DRAGON_PORT : options_int(o, OPT_TSDB_PORT);
}

int command_run(const struct options *o)
{
    struct error e;
    long rank = 0;
    int copies = options_int(o, OPT_LEVEL) > 0 ? allocation_copies(&rank) : 0;
    if (copies > 0) {
        error_set(&e, -EINVAL,
                  "this is one of %d copies of sonde run: start it once, and let it start the "
                  "copies (sonde run mpirun … or "
                  "sonde run srun …)",
                  copies);
        return rank == 0 ? command_failed(EXIT_USAGE, &e) : EXIT_USAGE;
    }
    if (check_together(o, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    bool no_record = options_flag(o, OPT_NO_RECORD) &&
                     o->value[OPT_NO_RECORD].source >= o->value[OPT_RECORD].source;
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde");
    struct launch_options launch = {
        .command = o->arguments,
        .title = options_text(o, OPT_TITLE),
        .name = options_text(o, OPT_NAME),
        .note = options_text(o, OPT_NOTE),
        .tags = options_text(o, OPT_TAG),
        .level = options_int(o, OPT_LEVEL),
        .rate_s = options_number(o, OPT_RATE),
        .sources = options_text(o, OPT_COLLECT),
        .scripts = options_text(o, OPT_SCRIPT),
        .trace = options_text(o, OPT_TRACE),
        .trace_python = options_text(o, OPT_TRACE_PYTHON),
        .window_s = options_number(o, OPT_WINDOW),
        .size_limit_bytes = (uint64_t)options_number(o, OPT_SIZE_LIMIT),
        .port = options_int(o, OPT_PORT),
        .dragon_port = dragon_port(o),
        .udp_port = options_int(o, OPT_UDP_PORT),
        .listen = options_text(o, OPT_LISTEN),
        .run_dir = options_text(o, OPT_RUN_DIR),
        .config = options_text(o, OPT_CONFIG),
        .record = no_record ? NULL : options_text(o, OPT_RECORD),
        .runs = options_text(o, OPT_RUNS),
        .runs_limits = options_runs_limits(o),
        .keep = options_flag(o, OPT_KEEP),
        .no_record = no_record,
        .cors = options_text(o, OPT_CORS_ORIGIN),
        .aggregator_memory_bytes = (uint64_t)options_number(o, OPT_AGGREGATOR_MEMORY),
        .agent_memory_bytes = (uint64_t)options_number(o, OPT_AGENT_MEMORY),
        .query_memory_bytes = (uint64_t)options_number(o, OPT_QUERY_MEMORY),
        .query_deadline_s = options_number(o, OPT_QUERY_DEADLINE),
        .node_deadline_s = options_number(o, OPT_NODE_DEADLINE),
        .connections = options_int(o, OPT_CONNECTIONS),
        .token_file = options_text(o, OPT_TOKEN_FILE),
        .tls_cert = options_text(o, OPT_TLS_CERT),
        .tls_key = options_text(o, OPT_TLS_KEY),
        .dragon_compatible = options_flag(o, OPT_DRAGON_COMPATIBLE),
        .open_view = options_flag(o, OPT_OPEN_VIEW),
        .auth_key = o->auth_key,
        .tunnel_node = options_text(o, OPT_REMOTE_TUNNEL_NODE),
        .tunnel_port = options_int(o, OPT_REMOTE_TUNNEL_PORT),
        .dump_node = options_text(o, OPT_DUMP_NODE),
        .dump_dir = options_text(o, OPT_DUMP_DIR),
        .open_hub = options_flag(o, OPT_OPEN_HUB),
        .quiet = options_flag(o, OPT_QUIET),
        .no_report = options_flag(o, OPT_NO_REPORT),
        .verbose = options_flag(o, OPT_VERBOSE),
        .stop_timeout_s = options_number(o, OPT_STOP_TIMEOUT),
        .nodes =
            {
                .hosts = options_text(o, OPT_HOSTS),
                .hostfile = options_text(o, OPT_HOSTFILE),
                .remote_sonde = options_text(o, OPT_REMOTE_SONDE),
                .transport = options_text(o, OPT_TRANSPORT),
                .dragon_port = dragon_port(o),
                .strict = options_flag(o, OPT_STRICT),
                .fanout = options_int(o, OPT_FANOUT),
                .node_timeout_s = options_number(o, OPT_NODE_TIMEOUT),
                .stop_timeout_s = options_number(o, OPT_STOP_TIMEOUT),
                .rules =
                    {
                        .nodes = (size_t)options_int(o, OPT_NODES),
                        .resilient = options_flag(o, OPT_RESILIENT),
                        .exhaust = options_flag(o, OPT_EXHAUST),
                        .max_restarts = options_int(o, OPT_MAX_RESTARTS),
                        .exit_code = options_int(o, OPT_RESTART_ON_EXIT),
                    },
                .quiet = options_flag(o, OPT_QUIET),
                .verbose = options_flag(o, OPT_VERBOSE),
            },
    };
    e.code = 0;
    int code = launch_run(&launch, &e);
    if (e.code != 0)
        log_error("%s", e.text);
    return code;
}
