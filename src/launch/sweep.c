#include "launch/sweep.h"

#include "base/log.h"
#include "launch/runs.h"

#include <unistd.h>

static void sweep_one(struct job *j)
{
    struct error e;
    int lock_fd = job_claim(j->folder);
    if (lock_fd < 0)
        return;
    // If an agent is still writing, the next sweep does this.
    if (!runs_being_written(j->folder)) {
        bool kept = !j->record[0] || runs_join(j, j->folder, j->record, false, &e) == 0;
        if (!kept)
            log_warning("the recording of job %s, whose sonde run was killed, stays in %s: %s",
                        j->id, j->folder, e.text);
        else if (folder_remove(j->folder, &e) < 0)
            log_warning("%s", e.text);
        else if (j->record[0])
            log_info("the recording of job %s, whose sonde run was killed, is in %s", j->id,
                     j->record);
    }
    close(lock_fd);
}

void sweep_dead_jobs(const char *base)
{
    struct job *list;
    size_t count;
    if (job_list(base, true, &list, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        sweep_one(&list[i]);
    job_list_free(list, count);
}
