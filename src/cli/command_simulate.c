#include "cli/commands.h"
#include "cli/serve.h"
#include "collect/collect.h"

#include "base/log.h"
#include "simulate/simulate.h"

int command_simulate(const struct options *o)
{
    struct error e = {0};
    char token[TOKEN_TEXT_MAX];
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde");
    int status = serve_token(o, token, &e);
    if (status < 0)
        return command_failed(EXIT_FAILED, &e);
    struct simulate_options simulate = {
        .nodes = (size_t)options_int(o, OPT_SIMULATED_NODES),
        .metrics = (size_t)options_int(o, OPT_METRICS),
        .fanout = (size_t)options_int(o, OPT_FANOUT),
        .rate_s = options_number(o, OPT_RATE),
        .history_s = options_number(o, OPT_HISTORY),
        .seed = (uint64_t)options_int(o, OPT_SEED),
        .quiet = options_flag(o, OPT_QUIET),
        .command = o->arguments,
        .serve =
            {
                .listen = options_text(o, OPT_LISTEN),
                .port = options_int(o, OPT_PORT),
                .token = token,
                .cors = options_text(o, OPT_CORS_ORIGIN),
                .job = "simulation",
                .level = 4,
                .limits = serve_limits(o),
                .dragon_compatible = options_flag(o, OPT_DRAGON_COMPATIBLE),
                .open_view = options_flag(o, OPT_OPEN_VIEW),
                .resolve_alias = serve_other_name,
                .alias_at = collect_alias,
            },
    };
    int code = simulate_run(&simulate, &e);
    if (e.code)
        log_error("%s", e.text);
    explicit_bzero(token, sizeof token);
    return code;
}
