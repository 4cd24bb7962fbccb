#include "launch/job_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_LINE_MAX = 16384, LINE_MAX_BYTES = 256 };

static size_t read_start(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t got = f ? fread(out, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    out[got] = 0;
    return got;
}

static uint64_t own_bytes(long pid)
{
    char path[64], line[LINE_MAX_BYTES];
    uint64_t kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "RssAnon: %" SCNu64, &kib) != 1)
        ;
    if (f)
        fclose(f);
    return kib << 10;
}

// Finds "--NAME=NUMBER" in a command line of `size` bytes, in which a NUL ends each word. Returns
// the number.
static uint64_t number_of(const char *line, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = line; word < line + size; word += strlen(word) + 1)
        if (strncmp(word, name, length) == 0)
            return strtoull(word + length, NULL, 10);
    return 0;
}

static void look_at_child(long pid, struct job_memory *out)
{
    char path[64], line[COMMAND_LINE_MAX];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    size_t size = read_start(path, line, sizeof line), first = strlen(line) + 1;
    const char *command = first < size ? line + first : "";
    if (strcmp(command, "agent") == 0) {
        out->agent_bytes = own_bytes(pid);
        out->agent_limit_bytes = number_of(line, size, "--agent-memory=");
    } else if (strcmp(command, "aggregator") == 0) {
        uint64_t query = number_of(line, size, "--query-memory="),
                 all = number_of(line, size, "--aggregator-memory=");
        out->aggregator_bytes = own_bytes(pid);
        out->aggregator_limit_bytes = query > all / 2 ? query * 2 : all; // like serve_limits
    }
}

void job_memory_read(pid_t launcher, struct job_memory *out)
{
    char path[64], list[COMMAND_LINE_MAX];
    *out = (struct job_memory){0};
    snprintf(path, sizeof path, "/proc/%ld/task", (long)launcher);
    DIR *tasks = opendir(path);
    for (struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks)) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", (long)launcher, entry->d_name);
        read_start(path, list, sizeof list);
        char *at = list, *end;
        for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at = end, &end, 10))
            look_at_child(pid, out);
    }
    if (tasks)
        closedir(tasks);
}
