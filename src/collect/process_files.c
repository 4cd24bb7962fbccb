#include "collect/process_files.h"

#include "collect/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

// Indices of the numbers after the closing bracket of /proc/PID/stat; the state letter is 0.
enum {
    STAT_STATE = 0,
    STAT_PARENT = 1,
    STAT_FLAGS = 6,
    STAT_UTIME = 11,
    STAT_STIME = 12,
    STAT_CUTIME = 13,
    STAT_CSTIME = 14,
    STAT_THREADS = 17,
    STAT_START = 19,
    STAT_RSS = 21,
    STAT_NEEDED = 22
};

enum { KERNEL_THREAD = 0x200000 }; // PF_KTHREAD of the kernel, in the flags

ssize_t process_file_read(struct process_files *f, uint64_t pid, int *file, const char *name,
                          char *text, size_t size)
{
    int fd = *file;
    if (fd < 0) {
        char path[32];
        snprintf(path, sizeof path, "%" PRIu64 "/%s", pid, name);
        fd = openat(f->folder, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return -errno;
    }
    ssize_t got = pread(fd, text, size, 0);
    if (got <= 0)
        got = got < 0 ? -errno : -ESRCH; // a process that lives has a text
    if (*file >= 0)
        return got;
    bool keep = got > 0 && f->open < PROCESS_FILES_MAX;
    if (!keep)
        close(fd);
    *file = keep ? fd : -1;
    f->open += keep;
    return got;
}

void process_file_close(struct process_files *f, int *file)
{
    if (*file < 0)
        return;
    close(*file);
    *file = -1;
    f->open--;
}

// The name in brackets may contain anything, brackets and blanks too: the numbers begin after the
// last closing bracket.
bool process_stat_parse(struct str line, struct process_stat *out)
{
    const char *bracket = line.size ? memrchr(line.data, ')', line.size) : NULL;
    if (!bracket)
        return false;
    struct str rest = str_slice(line, (size_t)(bracket - line.data) + 1, line.size);
    uint64_t numbers[STAT_NEEDED] = {0};
    *out = (struct process_stat){0};
    for (int i = 0; i < STAT_NEEDED; i++) {
        struct str word = str_word(&rest);
        if (i == STAT_STATE && word.size)
            out->state = word.data[0];
        bool needed = i == STAT_PARENT || i == STAT_FLAGS ||
                      (i >= STAT_UTIME && i <= STAT_CSTIME) || i == STAT_THREADS ||
                      i == STAT_START || i == STAT_RSS;
        if (needed && !str_to_u64(word, &numbers[i]))
            return false;
    }
    out->parent = numbers[STAT_PARENT];
    out->threads = numbers[STAT_THREADS];
    out->ticks = numbers[STAT_UTIME] + numbers[STAT_STIME];
    out->waited = numbers[STAT_CUTIME] + numbers[STAT_CSTIME];
    out->start = numbers[STAT_START];
    out->pages = numbers[STAT_RSS];
    out->kernel = numbers[STAT_FLAGS] & KERNEL_THREAD;
    return true;
}

bool process_io_parse(struct str text, uint64_t *read_bytes, uint64_t *write_bytes)
{
    struct str line;
    bool has_read = false, has_write = false;
    while (scan_line(&text, &line)) {
        struct str name = str_cut(&line, ':');
        uint64_t number;
        if (!line.data || !str_to_u64(str_trim(line), &number))
            continue;
        if (str_eq(name, STR("read_bytes"))) {
            *read_bytes = number;
            has_read = true;
        } else if (str_eq(name, STR("write_bytes"))) {
            *write_bytes = number;
            has_write = true;
        }
    }
    return has_read && has_write;
}
