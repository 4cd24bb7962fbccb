#include "cli/commands.h"
#include "cli/recordings.h"
#include "cli/serve.h"
#include "client/run_description.h"
#include "collect/collect.h"

#include "base/array.h"
#include "base/log.h"
#include "base/service.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

// Finds the paths to serve. Existing paths are passed on, because the server scans folders, also
// later. Any other argument may be the id of a job.
static int find_paths(const struct options *o, struct recordings *found, const char ***paths,
                      size_t *count, struct error *e)
{
    size_t given = (size_t)o->argument_count, taken = 0;
    *found = (struct recordings){0};
    *count = 0;
    if (!given) {
        int status = recordings_find(o, NULL, 0, found, e);
        *paths = NULL;
        *count = found->count;
        return status;
    }
    *paths = calloc(given, sizeof **paths);
    if (!*paths)
        return error_set(e, -ENOMEM, "out of memory");
    char **ids = calloc(given, sizeof *ids);
    int status = ids ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < given && !status; i++) {
        struct stat info;
        if (stat(o->arguments[i], &info) == 0)
            (*paths)[(*count)++] = o->arguments[i];
        else
            ids[taken++] = o->arguments[i];
    }
    if (taken && !status)
        status = recordings_find(o, ids, taken, found, e);
    free(ids);
    size_t capacity = given;
    if (!status && !array_room(paths, &capacity, *count + found->count, sizeof **paths))
        status = error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < found->count && !status; i++)
        (*paths)[(*count)++] = found->paths[i];
    return status;
}

int serve_recordings(const struct options *o, serve_ready_fn *ready, void *user)
{
    struct error e;
    char token[TOKEN_TEXT_MAX];
    struct recordings found;
    const char **paths;
    size_t count;
    log_setup(options_flag(o, OPT_VERBOSE) ? LOG_INFO : LOG_WARNING, "sonde");
    int status = find_paths(o, &found, &paths, &count, &e);
    if (status == 0)
        status = serve_token(o, token, &e);
    if (status == 0) {
        service_prepare(PROCESS_MEMORY_MAPPED_SERVER);
        struct aggregator_options replay = {
            .paths = paths ? paths : (const char *const *)found.paths,
            .path_count = count,
            .listen = options_text(o, OPT_LISTEN),
            .port = options_int(o, OPT_PORT),
            .token = token,
            .cors = options_text(o, OPT_CORS_ORIGIN),
            .tls_cert = options_text(o, OPT_TLS_CERT),
            .tls_key = options_text(o, OPT_TLS_KEY),
            .limits = serve_limits(o),
            .dragon_compatible = options_flag(o, OPT_DRAGON_COMPATIBLE),
            .open_view = options_flag(o, OPT_OPEN_VIEW),
            .resolve_alias = serve_other_name,
            .alias_at = collect_alias,
            .describe_run = run_description_read,
            .replay = true,
            .as_if_now = options_flag(o, OPT_AS_IF_NOW),
        };
        if (found.what[0])
            log_line(LOG_INFO, "%s", found.what);
        status =
            ready ? serve_until_signal(&replay, ready, user, &e)
                  : serve_by_hand(&replay, options_text(o, OPT_TOKEN_FILE) || o->auth_key[0], &e);
    }
    recordings_close(&found);
    free(paths);
    explicit_bzero(token, sizeof token);
    return status < 0 ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
}

int command_replay(const struct options *o)
{
    return serve_recordings(o, NULL, NULL);
}
