#include "cli/commands.h"

#include "agent/agent.h"
#include "base/log.h"
#include "base/service.h"
#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int command_agent(const struct options *o)
{
    struct error e;
    const char *folder = options_text(o, OPT_FOLDER);
    if (!folder)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "--folder=DIR is missing: the folder for the recording"), &e));
    if (options_int(o, OPT_LEVEL) == 0)
        return command_failed(
            EXIT_USAGE,
            (error_set(&e, -EINVAL, "an agent at --telemetry-level 0 has nothing to do"), &e));
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde agent");

    service_prepare(PROCESS_MEMORY_MAPPED_SMALL);

    // In a job's folder, job.json provides the meta of the file.
    char path[FOLDER_PATH_MAX];
    struct job job;
    snprintf(path, sizeof path, "%s/" JOB_FILE, folder);
    bool known = job_read(path, &job, NULL) == 0;
    struct store_label meta[] = {
        {STR("version"), STR(SONDE_VERSION)},
        {STR("command"), str_of(known ? job.command : "")},
    };
    int control_fd = options_int(o, OPT_CONTROL_FD);
    if (control_fd >= 0)
        fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    int keeper_fd = options_int(o, OPT_KEEPER_FD);
    if (keeper_fd > 0)
        fcntl(keeper_fd, F_SETFD, FD_CLOEXEC);
    // SONDE_SOCKET in the environment may belong to an outer job, so only the flag counts here.
    bool socket_given = o->value[OPT_SOCKET].source == FROM_FLAG;
    struct agent_options agent = {
        .folder = folder,
        .socket_path = socket_given ? options_text(o, OPT_SOCKET) : NULL,
        .overflow_folder = options_text(o, OPT_OVERFLOW),
        .host = options_text(o, OPT_HOST),
        .job = known && o->value[OPT_JOB].source != FROM_FLAG ? job.id : options_text(o, OPT_JOB),
        .meta = meta,
        .meta_count = known && job.command ? 2 : 1,
        .level = options_int(o, OPT_LEVEL),
        .rate_s = options_number(o, OPT_RATE),
        .sources = options_text(o, OPT_COLLECT),
        .scripts = options_text(o, OPT_SCRIPT),
        .script_folder = options_text(o, OPT_SCRIPT_FOLDER),
        .listening_fd = options_int(o, OPT_LISTEN_FD),
        .new_socket = options_flag(o, OPT_NEW_SOCKET),
        .keeper_fd = keeper_fd,
        .udp_port = options_int(o, OPT_UDP_PORT),
        .memory_bytes = (size_t)options_number(o, OPT_AGENT_MEMORY),
        .size_limit_bytes = (uint64_t)options_number(o, OPT_SIZE_LIMIT),
        .window_s = options_number(o, OPT_WINDOW),
        .control_fd = control_fd,
    };
    e.code = 0;
    int code = agent_run(&agent, &e);
    // With a control socket, the parent has received the error through it.
    if (code != 0 && e.code != 0 && control_fd < 0)
        log_error("%s", e.text);
    job_free(&job);
    return code == 0 ? EXIT_OK : EXIT_FAILED;
}
