#include "cli/commands.h"
#include "cli/data_request.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/runs.h"
#include "launch/summary.h"

#include <stdio.h>

int command_prune(const struct options *o)
{
    struct error e;
    char runs[FOLDER_PATH_MAX], bytes[32];
    struct runs_removed removed = {.dry = options_flag(o, OPT_DRY_RUN)};
    const struct runs_limits limits = options_runs_limits(o);
    log_setup(LOG_ERROR, "sonde");
    int rc = runs_path(options_text(o, OPT_RUNS), runs, &e);
    if (!rc)
        rc = runs_prune(runs, &limits, clock_realtime_ns(), &removed, &e);
    summary_bytes_text((double)removed.bytes, bytes, sizeof bytes);
    if (removed.count)
        printf("%s %zu recording%s, %s: %s\n", removed.dry ? "would remove" : "removed",
               removed.count, removed.count == 1 ? "" : "s", bytes, buf_cstr(&removed.names));
    else if (!rc)
        printf("nothing to remove\n");
    buf_free(&removed.names);
    return rc ? command_failed(EXIT_FAILED, &e) : EXIT_OK;
}
