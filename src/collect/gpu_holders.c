#include "collect/gpu_holders.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct gpu_holder *find_holder(const struct gpu_holder *holders, size_t count,
                                            uint64_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (holders[i].pid == pid)
            return &holders[i];
    return NULL;
}

// Determines, once per process, whether it belongs to the job, and its name.
static void look_at_holder(int proc, const struct job_mark *job, struct gpu_holder *holder)
{
    char path[32], text[1024];
    holder->of_job = proc >= 0 && job_process_has(proc, holder->pid, job);
    if (!holder->of_job)
        return;
    snprintf(path, sizeof path, "%" PRIu64 "/stat", holder->pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof text, 0);
    if (fd >= 0)
        close(fd);
    job_process_command((struct str){text, got > 0 ? (size_t)got : 0}, holder->command);
}

void gpu_holders_take(struct source *s, int proc, const struct job_mark *job, struct gpu_device *d,
                      double *values)
{
    for (size_t i = 0; i < d->holder_count; i++) {
        struct gpu_holder *holder = &d->holders[i];
        const struct gpu_holder *known = find_holder(d->known, d->known_count, holder->pid);
        if (known) {
            double bytes = holder->bytes;
            *holder = *known;
            holder->bytes = bytes;
        } else {
            look_at_holder(proc, job, holder);
            s->changed |= holder->of_job;
        }
        if (holder->place >= 0)
            values[holder->place] = holder->bytes;
    }
    for (size_t i = 0; i < d->known_count; i++)
        s->changed |=
            d->known[i].of_job && !find_holder(d->holders, d->holder_count, d->known[i].pid);
    memcpy(d->known, d->holders, d->holder_count * sizeof *d->known);
    d->known_count = d->holder_count;
}
