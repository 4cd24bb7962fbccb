#include "cli/commands.h"
#include "cli/recordings.h"

#include "base/log.h"
#include "launch/runs_merge.h"

#include <stdio.h>

static int merge(const struct options *o, const struct recordings *found, struct error *e)
{
    char runs[FOLDER_PATH_MAX];
    struct runs_merged merged;
    struct runs_merge request = {.files = found->paths,
                                 .count = found->count,
                                 .to = options_text(o, OPT_MERGE_OUTPUT),
                                 .several_jobs = options_flag(o, OPT_SEVERAL_JOBS)};
    int rc = request.to ? 0 : runs_path(options_text(o, OPT_RUNS), runs, e);
    request.runs = runs;
    if (!rc)
        rc = runs_merge(&request, &merged, e);
    if (rc)
        return rc;
    struct str rest = buf_str(&merged.notes);
    while (rest.size) {
        struct str line = str_cut(&rest, '\n');
        log_say("%.*s", STR_ARG(line));
    }
    buf_free(&merged.notes);
    if (!merged.described)
        log_say("%s has no run.json: %s", merged.path,
                merged.jobs > 1 ? "it holds several jobs" : "none of the sources has one");
    printf("%s: %zu file%s of %zu host%s\n", merged.path, merged.files,
           merged.files == 1 ? "" : "s", merged.hosts, merged.hosts == 1 ? "" : "s");
    return 0;
}

int command_merge(const struct options *o)
{
    struct error e;
    struct recordings found;
    log_setup(LOG_ERROR, "sonde");
    int rc = recordings_find(o, o->arguments, (size_t)o->argument_count, &found, &e);
    if (rc)
        return command_failed(EXIT_FAILED, &e);
    rc = merge(o, &found, &e);
    recordings_close(&found);
    return rc ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
}
