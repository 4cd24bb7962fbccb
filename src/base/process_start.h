// process_start.h - reads numbers of /proc/PID/stat: the parent of a process, and its start, which
// together with the pid identifies it.
#ifndef SONDE_BASE_PROCESS_START_H
#define SONDE_BASE_PROCESS_START_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// field numbers as in proc(5), counted from 1
enum { PROCESS_STAT_PARENT = 4, PROCESS_STAT_START = 22 };

// Returns 0 if the process does not exist or is not visible.
static inline uint64_t process_stat_number(const char *stat_path, int wanted)
{
    char text[1024] = "";
    // without stdio, because libsonde reads this in forked children, where stdio's locks may be
    // held
    int fd = open(stat_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    // The 2nd field, the name, is in brackets and may contain anything.
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < wanted; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

// Returns the start of a process in clock ticks since boot.
static inline uint64_t process_start_ticks(const char *stat_path)
{
    return process_stat_number(stat_path, PROCESS_STAT_START);
}

#endif
