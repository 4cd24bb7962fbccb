#include "cli/report_sample.h"

#include "base/array.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_natural_order(const void *a, const void *b)
{
    return str_compare_natural(str_of(*(char *const *)a), str_of(*(char *const *)b));
}

static char *path_of(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static int list_recordings(const char *folder, char ***paths, size_t *count)
{
    size_t capacity = 0;
    int rc = 0;
    DIR *opened = opendir(folder);
    *paths = NULL;
    *count = 0;
    for (const struct dirent *entry; !rc && opened && (entry = readdir(opened));) {
        if (entry->d_name[0] == '.' || !str_ends(str_of(entry->d_name), STR(".sonde")))
            continue;
        char *path = path_of(folder, entry->d_name);
        if (path && array_room(paths, &capacity, *count + 1, sizeof **paths)) {
            (*paths)[(*count)++] = path;
        } else {
            free(path);
            rc = -ENOMEM;
        }
    }
    if (opened)
        closedir(opened);
    return rc;
}

int report_sample_choose(const char *folder, struct report_sample *out)
{
    char **all;
    size_t count, kept = 0;
    int rc = list_recordings(folder, &all, &count);
    bool chosen = !rc && count > REPORT_SAMPLE_MAX;
    *out = (struct report_sample){.of = count};
    if (chosen)
        qsort(all, count, sizeof *all, by_natural_order);
    for (size_t i = 0; i < count; i++) {
        if (chosen && i == kept * (count - 1) / (REPORT_SAMPLE_MAX - 1))
            all[kept++] = all[i];
        else
            free(all[i]);
    }
    if (chosen) {
        out->paths = all;
        out->count = kept;
    } else {
        free(all);
    }
    return rc;
}

void report_sample_free(struct report_sample *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->paths[i]);
    free(s->paths);
    *s = (struct report_sample){0};
}
