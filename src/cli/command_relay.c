#include "cli/commands.h"

#include "aggregator/relay.h"
#include "base/log.h"
#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>

static int read_parent(const struct options *o, char host[WIRE_HOST_MAX + 1], int *port, struct error *e)
{
    const char *text = options_text(o, OPT_PARENT), *colon = text ? strrchr(text, ':') : NULL;
    int64_t number;
    size_t size = colon ? (size_t)(colon - text) : 0;
    if (!colon || !size || size > WIRE_HOST_MAX || !str_to_i64(str_of(colon + 1), &number) || number < 1 ||
        number > 65535)
        return error_set(e, -EINVAL, "--parent=HOST:PORT is missing or no such thing: who asks this node?");
    memcpy(host, text, size);
    host[size] = 0;
    *port = (int)number;
    return 0;
}

int command_relay(const struct options *o)
{
    struct error e = {0};
    char parent[WIRE_HOST_MAX + 1], own[JOB_HOST_MAX + 1];
    const char *host = options_text(o, OPT_HOST);
    int control_fd = options_int(o, OPT_CONTROL_FD);
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde relay");
    if (control_fd >= 0)
        fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    job_host(own);
    struct relay_options relay = {
        .folder = o->arguments[0],
        .parent_host = parent,
        .key_file = options_text(o, OPT_KEY_FILE),
        .job = options_text(o, OPT_JOB) ? options_text(o, OPT_JOB) : "",
        .host = host ? host : own,
        .transport = options_text(o, OPT_TRANSPORT),
    };
    if (read_parent(o, parent, &relay.parent_port, &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    if (!relay.key_file)
        return command_failed(EXIT_USAGE, (error_set(&e, -EINVAL, "--key-file=FILE is missing: the job's key"), &e));
    int status = relay_run(&relay, control_fd, &e);
    // Whoever holds the control socket has been told there.
    return status == 0 ? EXIT_OK : control_fd < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_FAILED;
}
