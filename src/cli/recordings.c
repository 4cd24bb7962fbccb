#include "cli/recordings.h"

#include "base/array.h"
#include "client/target.h"
#include "store/no_recording.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// ---------------------------------------------------------------- files

static int add_path(struct recordings *r, const char *path, struct error *e)
{
    if (r->count == RECORDINGS_FILES_MAX)
        return error_set(e, -E2BIG, "more than %d files", RECORDINGS_FILES_MAX);
    if (!array_room(&r->paths, &r->capacity, r->count + 1, sizeof *r->paths))
        return error_set(e, -ENOMEM, "out of memory");
    r->paths[r->count] = strdup(path);
    if (!r->paths[r->count])
        return error_set(e, -ENOMEM, "out of memory");
    r->count++;
    return 0;
}

static int is_recording(const struct dirent *entry)
{
    return folder_is_recording(entry->d_name);
}

static int add_folder(struct recordings *r, const char *folder, struct error *e)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_recording, alphasort);
    if (n < 0)
        return error_set(e, -errno, "cannot read folder %s: %s", folder, strerror(errno));
    int status = n == 0 ? no_recording(folder, e) : 0;
    for (int i = 0; i < n; i++) {
        char path[FOLDER_PATH_MAX + 256];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == 0)
            status = add_path(r, path, e);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int add(struct recordings *r, const struct target *t, struct error *e)
{
    struct stat info;
    if (stat(t->path, &info) != 0)
        return error_set(e, -errno, "cannot open %.200s: %s", t->path, strerror(errno));
    return S_ISDIR(info.st_mode) ? add_folder(r, t->path, e) : add_path(r, t->path, e);
}

int recordings_find(const struct options *o, char *const *paths, size_t count,
                    struct recordings *out, struct error *e)
{
    struct target_options options = {
        .run_dir = options_text(o, OPT_RUN_DIR),
        .runs = options_text(o, OPT_RUNS),
        .job = o->value[OPT_JOB].source == FROM_FLAG ? options_text(o, OPT_JOB) : NULL,
        .files = true};
    int status = 0;
    *out = (struct recordings){0};
    for (size_t i = 0; i < (count ? count : 1) && status == 0; i++) {
        struct target t;
        status = target_find(count ? paths[i] : NULL, NULL, &options, &t, e);
        if (status == 0)
            status = add(out, &t, e);
        if (status == 0)
            snprintf(out->what, sizeof out->what, "%s", t.what);
        target_free(&t);
    }
    if (status < 0)
        recordings_close(out);
    return status;
}

void recordings_close(struct recordings *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->paths[i]);
    free(r->paths);
    *r = (struct recordings){0};
}
