#include "cli/report_sample.h"

#include "base/str.h"
#include "launch/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_recording(const struct dirent *entry)
{
    return folder_is_recording(entry->d_name);
}

static int by_natural_order(const struct dirent **a, const struct dirent **b)
{
    return str_compare_natural(str_of((*a)->d_name), str_of((*b)->d_name));
}

static char *path_of(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

int report_sample_choose(const char *folder, struct report_sample *out)
{
    struct dirent **entries;
    int of = scandir(folder, &entries, is_recording, by_natural_order);
    *out = (struct report_sample){0};
    if (of < 0)
        return errno == ENOMEM ? -ENOMEM : 0;
    out->of = (size_t)of;
    int rc = 0;
    if (of > REPORT_SAMPLE_MAX && !(out->paths = calloc(REPORT_SAMPLE_MAX, sizeof *out->paths)))
        rc = -ENOMEM;
    for (size_t i = 0; i < out->of; i++) {
        size_t next = out->count * (out->of - 1) / (REPORT_SAMPLE_MAX - 1);
        if (out->paths && i == next &&
            !(out->paths[out->count++] = path_of(folder, entries[i]->d_name)))
            rc = -ENOMEM;
        free(entries[i]);
    }
    free(entries);
    return rc;
}

void report_sample_free(struct report_sample *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->paths[i]);
    free(s->paths);
    *s = (struct report_sample){0};
}
