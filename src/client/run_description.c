#include "client/run_description.h"

#include "launch/job.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

bool run_description_read(const char *folder, struct service_run *out)
{
    static const char *const names[] = {JOB_RUN_FILE, JOB_FILE};
    char path[FOLDER_PATH_MAX];
    struct job job;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int size = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (size >= (int)sizeof path || job_read(path, &job, NULL) != 0)
            continue;
        *out =
            (struct service_run){.command = job.command,
                                 .start_ns = job.start_ns,
                                 .end_ns = job.end_ns,
                                 .exit_code = job.exit_code,
                                 .level = job.level,
                                 .host = strdup(job.host),
                                 .about = job.about ? json_dumps(job.about, JSON_COMPACT) : NULL};
        job.command = NULL;
        job_free(&job);
        return true;
    }
    return false;
}
