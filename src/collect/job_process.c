#include "collect/job_process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { ENVIRON_CHUNK = 16384, ENVIRON_MAX = 1 << 20 };

void job_mark_set(struct job_mark *mark, const char *job)
{
    int size = snprintf(mark->text, sizeof mark->text, "SONDE_JOB=%s", job ? job : "");
    if (!job || !job[0] || size < 0 || (size_t)size >= sizeof mark->text)
        mark->text[0] = 0;
}

bool job_process_has(int proc, uint64_t pid, const struct job_mark *mark)
{
    char path[32], text[ENVIRON_CHUNK];
    size_t wanted = strlen(mark->text) + 1, kept = 0; // including the NUL
    bool found = false;
    snprintf(path, sizeof path, "%" PRIu64 "/environ", pid);
    int fd = mark->text[0] ? openat(proc, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    for (off_t offset = 0; offset < ENVIRON_MAX && !found;) {
        ssize_t got = pread(fd, text + kept, sizeof text - kept, offset);
        if (got <= 0)
            break;
        size_t size = kept + (size_t)got;
        const char *hit = memmem(text, size, mark->text, wanted);
        found = hit && ((hit == text && offset == 0) || (hit > text && hit[-1] == 0));
        offset += got;
        // keeps one byte more than a partial mark can have: the byte in front of it
        kept = size < wanted ? size : wanted;
        memmove(text, text + size - kept, kept);
    }
    close(fd);
    return found;
}

void job_process_command(struct str stat_line, char command[JOB_COMMAND_SIZE])
{
    const char *data = stat_line.data,
               *open = stat_line.size ? memchr(data, '(', stat_line.size) : NULL,
               *close = stat_line.size ? memrchr(data, ')', stat_line.size) : NULL;
    size_t size = open && close > open ? (size_t)(close - open - 1) : 0;
    if (size >= JOB_COMMAND_SIZE)
        size = JOB_COMMAND_SIZE - 1;
    for (size_t i = 0; i < size; i++) {
        char c = open[1 + i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     memchr("_.:/-+", c, 6);
        command[i] = plain ? c : '_';
    }
    command[size] = 0;
}
