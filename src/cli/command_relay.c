#include "cli/commands.h"

#include "aggregator/relay.h"
#include "base/log.h"
#include "base/service.h"
#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>

int command_relay(const struct options *o)
{
    struct error e = {0};
    char own[JOB_HOST_MAX + 1];
    struct arena arena = {0};
    struct wire_parent parents[WIRE_PARENTS_MAX];
    const char *host = options_text(o, OPT_HOST);
    int control_fd = options_int(o, OPT_CONTROL_FD);
    service_prepare(PROCESS_MEMORY_MAPPED_SERVER);
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde relay");
    if (control_fd >= 0)
        fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    job_host(own);
    struct relay_options relay = {
        .folder = o->arguments[0],
        .parents = parents,
        .parent_count = relay_parents(str_of(options_text(o, OPT_PARENT)), &arena, parents),
        .children = options_flag(o, OPT_CHILDREN),
        .key_file = options_text(o, OPT_KEY_FILE),
        .job = options_text(o, OPT_JOB) ? options_text(o, OPT_JOB) : "",
        .host = host ? host : own,
        .transport = options_text(o, OPT_TRANSPORT),
        .dragon_port = options_int(o, OPT_TSDB_PORT),
    };
    int usage = 0;
    if (!relay.parent_count)
        usage = error_set(
            &e, -EINVAL,
            "--parent=HOST:PORT is missing or not valid: the hub that this relay connects to");
    else if (!relay.key_file)
        usage = error_set(&e, -EINVAL, "--key-file=FILE is missing: the job's key");
    int status = usage ? usage : relay_run(&relay, control_fd, &e);
    arena_free(&arena);
    if (usage)
        return command_failed(EXIT_USAGE, &e);
    // With a control socket, the parent has received the error through it.
    return status == 0 ? EXIT_OK : control_fd < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_FAILED;
}
