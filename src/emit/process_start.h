// process_start.h - when a process began, which together with its pid tells it from all others. For emit and ingest.
#ifndef SONDE_EMIT_PROCESS_START_H
#define SONDE_EMIT_PROCESS_START_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In clock ticks since boot, from a process' /proc/…/stat; 0 = no such process, or it is not to be seen.
static inline uint64_t process_start_ticks(const char *stat_path)
{
    char text[1024] = "";
    FILE *f = fopen(stat_path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    // The 22nd field; the 2nd, the name, is in brackets and may hold anything.
    char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

#endif
