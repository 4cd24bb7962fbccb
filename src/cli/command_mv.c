#include "cli/commands.h"
#include "cli/data_request.h"

#include "base/log.h"
#include "launch/run_metadata.h"
#include "launch/runs_move.h"

#include <errno.h>
#include <stdio.h>

int command_mv(const struct options *o)
{
    struct error e;
    struct target t;
    struct target_options places = data_request_targets(o);
    const char *run = o->arguments[0], *to = o->arguments[1];
    char path[FOLDER_PATH_MAX];
    bool is_path = strchr(to, '/') != NULL;
    log_setup(LOG_ERROR, "sonde");
    if (!is_path && run_metadata_check_name(str_of(to), &e) < 0)
        return command_failed(EXIT_USAGE, &e);
    places.files = true;
    if (target_find(run, NULL, &places, &t, &e) < 0)
        return command_failed(EXIT_FAILED, &e);
    int rc = is_path ? runs_move(t.path, to, path, &e) : runs_rename(t.path, to, &e);
    target_free(&t);
    if (rc)
        return command_failed(EXIT_FAILED, &e);
    if (is_path)
        printf("moved %s to %s\n", run, path);
    else
        printf("%s is called %s now\n", run, to);
    return EXIT_OK;
}
