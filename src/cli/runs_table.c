#include "cli/runs_table.h"

#include "base/array.h"
#include "client/client.h"
#include "launch/folder_list.h"
#include "launch/runs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// What the recordings in a folder take on the disk.
static void measure(struct runs_row *row)
{
    DIR *folder = opendir(row->path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        struct stat info;
        if (folder_is_recording(entry->d_name) &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0) {
            row->files++;
            row->bytes += (uint64_t)info.st_blocks * 512;
        }
    }
    if (folder)
        closedir(folder);
}

// Takes over the job. False: no memory.
static bool add_row(struct runs_table *t, size_t *capacity, struct job *job, const char *path,
                    enum runs_state state)
{
    bool room = array_room(&t->rows, capacity, t->count + 1, sizeof *t->rows);
    if (room) {
        struct runs_row *row = &t->rows[t->count++];
        *row = (struct runs_row){.job = *job, .state = state};
        snprintf(row->path, sizeof row->path, "%s", path);
        measure(row);
        *job = (struct job){0};
    }
    job_free(job);
    return room;
}

// The jobs in the run folders: those that run, or those whose launcher was killed.
static int add_here(struct runs_table *t, size_t *capacity, const char *base, bool dead,
                    struct error *e)
{
    struct job *jobs;
    size_t count;
    bool room = true;
    int rc = job_list(base, dead, &jobs, &count, e);
    for (size_t i = 0; !rc && i < count && room; i++) {
        char path[FOLDER_PATH_MAX];
        memcpy(path, jobs[i].folder, sizeof path);
        room = add_row(t, capacity, &jobs[i], path, dead ? RUNS_KILLED : RUNS_RUNNING);
    }
    if (!rc)
        job_list_free(jobs, count);
    return room ? rc : error_set(e, -ENOMEM, "out of memory");
}

static int add_kept(struct runs_table *t, size_t *capacity, const char *runs, struct error *e)
{
    struct runs_entry *list;
    size_t count;
    int rc = runs_list(runs, &list, &count, e);
    for (size_t i = 0; !rc && i < count; i++) {
        char path[FOLDER_PATH_MAX + 16];
        struct job job;
        snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, list[i].path);
        if (job_read(path, &job, NULL) < 0)
            job_free(&job);
        else if (!add_row(t, capacity, &job, list[i].path, RUNS_ENDED))
            rc = error_set(e, -ENOMEM, "out of memory");
    }
    free(list);
    return rc;
}

static int newest_first(const void *a, const void *b)
{
    const struct runs_row *x = a, *y = b;
    return folder_list_newest_first(x->job.start_ns, x->job.id, y->job.start_ns, y->job.id);
}

int runs_table_read(const struct target_options *o, struct runs_table *out, struct error *e)
{
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX];
    size_t capacity = 0;
    *out = (struct runs_table){0};
    int rc = folder_base_path(o->run_dir, base, e);
    if (!rc)
        rc = runs_path(o->runs, runs, e);
    if (!rc)
        rc = add_here(out, &capacity, base, false, e);
    if (!rc)
        rc = add_here(out, &capacity, base, true, e);
    if (!rc)
        rc = add_kept(out, &capacity, runs, e);
    if (rc)
        runs_table_free(out);
    else if (out->count)
        qsort(out->rows, out->count, sizeof *out->rows, newest_first);
    return rc;
}

static void free_row(struct runs_row *row)
{
    sonde_client_close(row->client);
    job_free(&row->job);
    parameters_free(&row->parameters);
}

void runs_table_free(struct runs_table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free_row(&t->rows[i]);
    free(t->rows);
    arena_free(&t->memory);
    *t = (struct runs_table){0};
}

void runs_table_keep(struct runs_table *t, const bool *wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (wanted[i])
            t->rows[kept++] = t->rows[i];
        else
            free_row(&t->rows[i]);
    }
    t->count = kept;
}
