#include "cli/commands.h"

#include "aggregator/aggregator.h"
#include "base/log.h"
#include "collect/collect.h"
#include "launch/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>

enum { TOKEN_FILE_MAX = 4096, TOKEN_BYTES = 32 };

// The first line of the file, or a new token where none is given.
static int find_token(const char *path, struct buf *out, struct error *e)
{
    if (path) {
        int status = folder_read(path, TOKEN_FILE_MAX, out, e);
        if (status < 0)
            return status;
        out->size = strcspn(buf_cstr(out), "\r\n");
        if (out->size == 0)
            return error_set(e, -EINVAL, "%s holds no token", path);
        return 0;
    }
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(e, -errno, "cannot make a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        buf_printf(out, "%02x", bytes[i]);
    return 0;
}

// By hand, without a control socket: says where it listens, then serves until a signal comes.
static int serve_by_hand(const struct aggregator_options *options, struct error *e)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); // before it starts its threads
    struct aggregator *aggregator;
    int status = aggregator_start(options, &aggregator, e);
    if (status < 0)
        return status;
    bool v6 = strchr(options->listen, ':') != NULL;
    fprintf(stderr, "sonde: http://%s%s%s:%d/?token=%s\n", v6 ? "[" : "", options->listen, v6 ? "]" : "",
            aggregator_port(aggregator), options->token);
    int number;
    sigwait(&ends, &number);
    aggregator_stop(aggregator);
    return 0;
}

// Built-in metrics answer to other names, too.
static struct str other_name(struct str name)
{
    const struct collect_metric *known = collect_find(name);
    return known ? known->metric.name : STR("");
}

int command_aggregator(const struct options *o)
{
    struct error e;
    struct buf token = {0};
    // SONDE_TOKEN_FILE in the environment is that of the job around us; by hand only the flag counts.
    bool token_given = o->value[OPT_TOKEN_FILE].source == FROM_FLAG;
    int control_fd = options_int(o, OPT_CONTROL_FD);
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde aggregator");
    if (control_fd >= 0)
        fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    int status = find_token(token_given ? options_text(o, OPT_TOKEN_FILE) : NULL, &token, &e);
    if (status == 0) {
        struct aggregator_options aggregator = {
            .paths = (const char *const *)o->arguments,
            .path_count = (size_t)o->argument_count,
            .listen = options_text(o, OPT_LISTEN),
            .port = options_int(o, OPT_PORT),
            .token = buf_cstr(&token),
            .job = options_text(o, OPT_JOB),
            // SONDE_SOCKET in the environment is that of the job around us, too.
            .agent_socket = o->value[OPT_SOCKET].source == FROM_FLAG ? options_text(o, OPT_SOCKET) : NULL,
            .level = options_int(o, OPT_LEVEL),
            .resolve_alias = other_name,
            .dragon_compatible = options_flag(o, OPT_DRAGON_COMPATIBLE),
        };
        status = control_fd >= 0 ? aggregator_run(&aggregator, control_fd, &e) : serve_by_hand(&aggregator, &e);
    }
    buf_free(&token);
    // Whoever holds the control socket has been told there.
    if (status < 0 && control_fd < 0)
        return command_failed(EXIT_FAILED, &e);
    return status < 0 ? EXIT_FAILED : EXIT_OK;
}
