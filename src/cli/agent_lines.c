#include "cli/agent_lines.h"

#include "base/exchange.h"
#include "base/log.h"
#include "cli/data_request.h"
#include "client/target.h"
#include "emit/segment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    RESPONSE_MAX = 64 * 1024,   // bytes of the agent's messages that are kept
    RESPONSE_TIMEOUT_MS = 10000 // for the agent to read the lines and respond
};

static int find_socket(const struct options *o, char out[FOLDER_SOCKET_MAX + 1], struct error *e)
{
    char path[FOLDER_PATH_MAX + 16];
    if (options_text(o, OPT_SOCKET) && o->value[OPT_JOB].source != FROM_FLAG) {
        snprintf(path, sizeof path, "%s", options_text(o, OPT_SOCKET));
    } else {
        struct job job;
        struct target_options where = data_request_targets(o);
        int status = target_running(NULL, &where, &job, e);
        if (status < 0)
            return status;
        snprintf(path, sizeof path, "%s/agent.sock", job.folder);
        job_free(&job);
    }
    if (strlen(path) > FOLDER_SOCKET_MAX)
        return error_set(e, -ENAMETOOLONG, "the path of the socket is longer than %d bytes: %.60s…",
                         FOLDER_SOCKET_MAX, path);
    memcpy(out, path, strlen(path) + 1);
    return 0;
}

static bool folder_is_here(const char *socket_path)
{
    char folder[FOLDER_SOCKET_MAX + 1];
    snprintf(folder, sizeof folder, "%s", socket_path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    return !slash || slash == folder || access(folder, F_OK) == 0;
}

static int send_to(const char *path, struct str lines, int more, struct buf *reply, struct error *e)
{
    int fd = exchange_open(path);
    if (fd == -ENOENT && !folder_is_here(path))
        return error_set(e, fd,
                         "no agent answers at %s: its job is over, or its folder cannot be reached "
                         "from here. %s",
                         path, SEGMENT_FOLDER_HINT);
    if (fd < 0)
        return error_set(e, fd, "no agent answers at %s: %s", path,
                         fd == -ENOENT || fd == -ECONNREFUSED ? "its job is over" : strerror(-fd));
    struct exchange x = {.who = "the agent",
                         .text = lines,
                         .more = more,
                         .patience_ms = RESPONSE_TIMEOUT_MS,
                         .answer = reply};
    int status = exchange_run(fd, &x, e);
    close(fd);
    return status;
}

int agent_lines_send(const struct options *o, struct str lines, int more, struct error *e)
{
    char path[FOLDER_SOCKET_MAX + 1];
    struct buf reply = {.limit = RESPONSE_MAX};
    int status = find_socket(o, path, e);
    if (status == 0)
        status = send_to(path, lines, more, &reply, e);
    struct str rest = buf_str(&reply);
    while (rest.data && rest.size > 0) {
        struct str words = str_trim(str_cut(&rest, '\n'));
        if (words.size > 0)
            log_error("%.*s", STR_ARG(words));
    }
    int refused = reply.size > 0;
    buf_free(&reply);
    return status < 0 ? status : refused;
}
