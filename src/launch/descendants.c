#include "launch/descendants.h"

#include "base/array.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct process {
    pid_t pid, parent, session;
    bool ours, zombie;
};

void descendants_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// /proc/PID/stat: "PID (NAME) STATE PPID PGRP SESSION …", where NAME may hold anything.
static bool read_process(const char *name, struct process *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *behind = strrchr(text, ')');
    char state;
    int parent, session;
    if (!behind || sscanf(behind + 1, " %c %d %*d %d", &state, &parent, &session) != 3)
        return false;
    *out = (struct process){.pid = (pid_t)atoi(name),
                            .parent = parent,
                            .session = session,
                            .zombie = state == 'Z' || state == 'X'};
    return true;
}

static size_t read_all(struct process **out)
{
    struct process *list = NULL;
    size_t count = 0, capacity = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry = folder ? readdir(folder) : NULL;
         entry && count < DESCENDANTS_LOOKED_AT_MAX; entry = readdir(folder)) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (!array_room(&list, &capacity, count + 1, sizeof *list))
            break;
        count += read_process(entry->d_name, &list[count]);
    }
    if (folder)
        closedir(folder);
    *out = list;
    return count;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

// Parents may have higher process ids than their children, so the search repeats until it finds no
// more.
static void mark(struct process *list, size_t count, bool (*spare)(void *user, pid_t child),
                 void *user)
{
    pid_t self = getpid();
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < count; i++) {
            struct process *p = &list[i], key = {.pid = p->parent};
            if (p->ours)
                continue;
            if (p->parent == self) {
                p->ours = !spare(user, p->pid);
            } else {
                const struct process *parent = bsearch(&key, list, count, sizeof *list, by_pid);
                p->ours = parent && parent->ours;
            }
            changed |= p->ours;
        }
    }
}

size_t descendants_signal(int signal, bool (*spare)(void *user, pid_t child), void *user)
{
    struct process *list;
    size_t count = read_all(&list), found = 0;
    if (count > 0)
        qsort(list, count, sizeof *list, by_pid);
    mark(list, count, spare, user);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].ours || list[i].zombie)
            continue;
        found++;
        if (signal)
            kill(list[i].pid, signal);
    }
    free(list);
    return found;
}

void descendants_end_session(pid_t session)
{
    struct process *list;
    size_t count = read_all(&list);
    for (size_t i = 0; i < count; i++)
        if (list[i].session == session && !list[i].zombie)
            kill(list[i].pid, SIGKILL);
    free(list);
}
