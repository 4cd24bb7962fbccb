#include "cli/commands.h"
#include "cli/serve.h"
#include "client/run_description.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"
#include "collect/collect.h"
#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>

int command_aggregator(const struct options *o)
{
    struct error e;
    char token[TOKEN_TEXT_MAX];
    int control_fd = options_int(o, OPT_CONTROL_FD);
    service_prepare(PROCESS_MEMORY_MAPPED_SERVER);
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde aggregator");
    if (control_fd >= 0)
        fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    const int handed[] = {options_int(o, OPT_LISTEN_FD), options_int(o, OPT_HUB_FD),
                          options_int(o, OPT_TSDB_FD)};
    for (size_t i = 0; i < sizeof handed / sizeof *handed; i++)
        if (handed[i])
            fcntl(handed[i], F_SETFD, FD_CLOEXEC);
    int status = serve_token(o, token, &e);
    const char *key_file = options_text(o, OPT_KEY_FILE), *host = options_text(o, OPT_HOST);
    char own[JOB_HOST_MAX + 1];
    job_host(own);
    struct aggregator_hub hub = {
        .address = options_text(o, OPT_HUB_LISTEN),
        .port = options_int(o, OPT_HUB_PORT),
        .fd = options_int(o, OPT_HUB_FD),
        .key_file = key_file,
        .host = host ? host : own,
        .expect = options_text(o, OPT_EXPECT),
        .transport = options_text(o, OPT_TRANSPORT),
    };
    if (status == 0 && !key_file && (hub.address || hub.expect || hub.port))
        status = error_set(&e, -EINVAL,
                           "--key-file=FILE is missing: nodes connect only with the job's key");
    if (status == 0) {
        struct aggregator_options aggregator = {
            .paths = (const char *const *)o->arguments,
            .path_count = (size_t)o->argument_count,
            .listen = options_text(o, OPT_LISTEN),
            .port = options_int(o, OPT_PORT),
            .listen_fd = options_int(o, OPT_LISTEN_FD),
            .token = token,
            .cors = options_text(o, OPT_CORS_ORIGIN),
            .tls_cert = options_text(o, OPT_TLS_CERT),
            .tls_key = options_text(o, OPT_TLS_KEY),
            .job = options_text(o, OPT_JOB),
            // SONDE_SOCKET in the environment may belong to the job around this process.
            .agent_socket =
                o->value[OPT_SOCKET].source == FROM_FLAG ? options_text(o, OPT_SOCKET) : NULL,
            .dump_node = options_text(o, OPT_DUMP_NODE),
            .dump_dir = options_text(o, OPT_DUMP_DIR),
            .limits = serve_limits(o),
            .level = options_int(o, OPT_LEVEL),
            .dragon_fd = options_int(o, OPT_TSDB_FD),
            .window_ns = (int64_t)(options_number(o, OPT_WINDOW) * NS_PER_S),
            .resolve_alias = serve_other_name,
            .alias_at = collect_alias,
            .describe_run = run_description_read,
            .restarts = options_flag(o, OPT_RESTARTS),
            .hub = key_file ? &hub : NULL,
            .dragon_compatible = options_flag(o, OPT_DRAGON_COMPATIBLE),
            .open_view = options_flag(o, OPT_OPEN_VIEW),
        };
        status =
            control_fd >= 0
                ? aggregator_run(&aggregator, control_fd, &e)
                : serve_by_hand(&aggregator, options_text(o, OPT_TOKEN_FILE) || o->auth_key[0], &e);
    }
    explicit_bzero(token, sizeof token);
    // With a control socket, the parent has received the error through it.
    if (status < 0 && control_fd < 0)
        return command_failed(EXIT_FAILED, &e);
    return status < 0 ? EXIT_FAILED : EXIT_OK;
}
