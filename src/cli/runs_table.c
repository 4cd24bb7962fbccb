#include "cli/runs_table.h"

#include "base/array.h"
#include "client/client.h"
#include "launch/folder_list.h"
#include "launch/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Adds a row, and takes over the job. Returns false if memory is exhausted.
static bool add_row(struct runs_table *t, size_t *capacity, struct job *job, const char *path,
                    struct runs_size size, enum runs_state state)
{
    bool room = array_room(&t->rows, capacity, t->count + 1, sizeof *t->rows);
    if (room) {
        struct runs_row *row = &t->rows[t->count++];
        *row = (struct runs_row){.job = *job, .size = size, .state = state};
        snprintf(row->path, sizeof row->path, "%s", path);
        *job = (struct job){0};
    }
    job_free(job);
    return room;
}

// Adds the jobs in the run folders: running jobs, or with `dead` jobs whose launcher was killed.
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
        room = add_row(t, capacity, &jobs[i], path, runs_measure(path, true),
                       dead ? RUNS_KILLED : RUNS_RUNNING);
    }
    if (!rc)
        job_list_free(jobs, count);
    return room ? rc : error_set(e, -ENOMEM, "out of memory");
}

static int add_kept(struct runs_table *t, size_t *capacity, const char *runs, struct error *e)
{
    struct runs_entry *list;
    size_t count;
    bool room = true;
    int rc = runs_list_described(runs, &list, &count, &t->left_out, e);
    for (size_t i = 0; !rc && i < count && room; i++)
        room = add_row(t, capacity, list[i].job, list[i].path, list[i].size, RUNS_ENDED);
    runs_list_free(list, count);
    return room ? rc : error_set(e, -ENOMEM, "out of memory");
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
    buf_free(&t->left_out);
    *t = (struct runs_table){0};
}

void runs_table_keep(struct runs_table *t, const bool *keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (keep[i])
            t->rows[kept++] = t->rows[i];
        else
            free_row(&t->rows[i]);
    }
    t->count = kept;
}
