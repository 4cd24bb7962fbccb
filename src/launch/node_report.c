#include "launch/node_report.h"

#include "base/log.h"

#include <sys/stat.h>

// A file beside ours needs no message of its own: "recorded in DIR" covers it.
static bool lies_here(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

void node_report(const struct placement *placement, const struct gather *gather,
                 const struct allocation *allocation, const struct job *job, bool quiet)
{
    struct buf elsewhere = {0};
    for (size_t i = 0; i < allocation->hosts.count; i++) {
        bool stays;
        const char *path = placement_recording(placement, i, &stays);
        enum node_state state = placement_state(placement, i);
        const char *problem = gather ? gather_problem(gather, i) : NULL;
        if (gather && gather_has(gather, i))
            continue;
        if (problem)
            log_warning("the recording of node %s could not be brought here: %s",
                        allocation->hosts.names[i], problem);
        if (stays)
            log_warning("the recording of node %s is not kept; it is still there, in %s",
                        allocation->hosts.names[i], path);
        else if (path[0] && (problem || !lies_here(path)))
            buf_printf(&elsewhere, "%s%s:%s", elsewhere.size ? ", " : "",
                       allocation->hosts.names[i], path);
        else if (!path[0] && job->record[0] &&
                 (state == NODE_LOST || state == NODE_SILENT || state == NODE_ENDING))
            log_warning(
                "where the recording of node %s is, it has not said; look on it in %s and %s",
                allocation->hosts.names[i], job->record, job->folder);
    }
    if (elsewhere.size > 0 && !quiet)
        log_say("recorded on the other nodes: %s", buf_cstr(&elsewhere));
    buf_free(&elsewhere);
}
