#include "launch/plain.h"

#include "base/full_io.h"
#include "launch/command.h"
#include "launch/substitute.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int plain_hostfile(const struct nodes *nodes, char path[PLAIN_PATH_MAX])
{
    struct buf text = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    path[0] = 0;
    int fd = nodes_hostfile_text(nodes, &text) ? memfd_create("hostfile", MFD_CLOEXEC) : -1;
    sigaction(SIGXFSZ, &ignore, &before); // RLIMIT_FSIZE applies to this file, too
    int status = fd < 0 ? -ENOMEM : full_write(fd, buf_str(&text), 0);
    sigaction(SIGXFSZ, &before, NULL);
    buf_free(&text);
    if (status < 0) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    snprintf(path, PLAIN_PATH_MAX, "/proc/%d/fd/%d", (int)getpid(), fd);
    return fd;
}

static int run_with_nodes(const struct launch_options *o, const struct nodes *nodes,
                          struct error *e)
{
    char hostfile[PLAIN_PATH_MAX];
    struct command_environment env = {0};
    int fd = plain_hostfile(nodes, hostfile);
    if (fd >= 0)
        fcntl(fd, F_SETFD, 0); // the command inherits it
    command_set(&env, "SONDE_LEVEL", "0");
    command_set(&env, "SONDE_NODELIST", "%s", nodes_list(nodes));
    if (fd >= 0)
        command_set(&env, "SONDE_HOSTFILE", "%s", hostfile);
    char **words = nodes_substitute(nodes, hostfile, o->command);
    int status = words ? command_become(words, &env, e) : error_set(e, -ENOMEM, "out of memory");
    substitute_free(words);
    command_environment_free(&env);
    if (fd >= 0)
        close(fd);
    return command_failure_code(status);
}

int plain_run(const struct launch_options *o, struct nodes *nodes, struct error *e)
{
    if (nodes)
        return run_with_nodes(o, nodes, e);
    if (substitute_needed(o->command)) {
        struct job job = {0};
        job_host(job.host);
        int status = nodes_find(&o->nodes, &job, &nodes, e);
        if (status < 0)
            return status == -ENOMEM ? LAUNCH_NOT_EXECUTABLE : LAUNCH_WRONG_OPTION;
        int code = run_with_nodes(o, nodes, e);
        nodes_close(nodes);
        return code;
    }
    struct command_environment env = {0};
    command_set(&env, "SONDE_LEVEL", "0");
    int status = command_become(o->command, &env, e);
    command_environment_free(&env);
    return command_failure_code(status);
}
