#include "cli/recordings.h"

#include "base/log.h"
#include "launch/job.h"
#include "launch/runs.h"
#include "store/no_recording.h"
#include "wire/drain.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// ---------------------------------------------------------------- which files

static int add_path(struct recordings *r, const char *path, struct error *e)
{
    if (r->count == RECORDINGS_FILES_MAX)
        return error_set(e, -E2BIG, "more than %d files", RECORDINGS_FILES_MAX);
    char **more = realloc(r->paths, (r->count + 1) * sizeof *more);
    if (!more)
        return error_set(e, -ENOMEM, "out of memory");
    r->paths = more;
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

// The run folder of a job that runs, or (dead) whose launcher was killed; with id NULL the newest. Empty when there is none.
static void find_run_folder(const struct options *o, const char *id, bool dead, char folder[FOLDER_PATH_MAX])
{
    char base[FOLDER_PATH_MAX];
    struct job *jobs;
    size_t count;
    folder[0] = 0;
    if (folder_base_path(options_text(o, OPT_RUN_DIR), base, NULL) < 0 || job_list(base, dead, &jobs, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count && !folder[0]; i++) {
        if (!id || strcmp(jobs[i].id, id) == 0)
            memcpy(folder, jobs[i].folder, FOLDER_PATH_MAX);
    }
    job_list_free(jobs, count);
}

// The kept recording of that id. Empty when there is none.
static void find_kept(const struct options *o, const char *id, char folder[FOLDER_PATH_MAX])
{
    char runs[FOLDER_PATH_MAX];
    folder[0] = 0;
    if (strchr(id, '/') || runs_path(options_text(o, OPT_RUNS), runs, NULL) < 0)
        return;
    int n = snprintf(folder, FOLDER_PATH_MAX, "%s/%s", runs, id);
    if (n < 0 || n >= FOLDER_PATH_MAX || !runs_is_run(folder))
        folder[0] = 0;
}

static void find_newest_kept(const struct options *o, char folder[FOLDER_PATH_MAX])
{
    char runs[FOLDER_PATH_MAX];
    struct runs_entry *list;
    size_t count;
    folder[0] = 0;
    if (runs_path(options_text(o, OPT_RUNS), runs, NULL) < 0 || runs_list(runs, &list, &count, NULL) < 0)
        return;
    if (count > 0)
        memcpy(folder, list[0].path, FOLDER_PATH_MAX);
    free(list);
}

// Running, left behind, kept: the first that there is.
static bool find_job(const struct options *o, const char *id, char folder[FOLDER_PATH_MAX], const char **state)
{
    find_run_folder(o, id, false, folder);
    *state = "running job";
    if (!folder[0]) {
        find_run_folder(o, id, true, folder);
        *state = "job whose launcher was killed:";
    }
    if (!folder[0]) {
        find_kept(o, id, folder);
        *state = "recording";
    }
    return folder[0];
}

static int add_given(const struct options *o, struct recordings *r, const char *path, struct error *e)
{
    struct stat info;
    char folder[FOLDER_PATH_MAX];
    const char *state;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? add_folder(r, path, e) : add_path(r, path, e);
    int code = errno;
    if (!strchr(path, '/') && find_job(o, path, folder, &state))
        return add_folder(r, folder, e);
    if (code == ENOENT)
        return error_set(e, -ENOENT, "'%.200s' is no file, no folder and no job", path);
    return error_set(e, -code, "cannot open %.200s: %s", path, strerror(code));
}

static int add_default(const struct options *o, struct recordings *r, struct error *e)
{
    const char *job = options_text(o, OPT_JOB), *state;
    char folder[FOLDER_PATH_MAX];
    if (job && find_job(o, job, folder, &state)) {
        snprintf(r->what, sizeof r->what, "%s %.60s", state, job);
        return add_folder(r, folder, e);
    }
    if (job && o->value[OPT_JOB].source == FROM_FLAG)
        return error_set(e, -ENOENT, "there is no job %.80s, neither running nor recorded", job);
    find_run_folder(o, NULL, false, folder);
    state = "running job";
    if (!folder[0]) {
        find_newest_kept(o, folder);
        state = "recording";
    }
    if (!folder[0])
        return error_set(e, -ENOENT, "no job runs here and none is recorded; start one with sonde run");
    snprintf(r->what, sizeof r->what, "%s %s", state, strrchr(folder, '/') + 1);
    return add_folder(r, folder, e);
}

// ---------------------------------------------------------------- opening

// Has the agents of running jobs take over what their programs have emitted so far, the cells of the program that has started us
// included. An agent that does not answer in time, or has gone, leaves the file as it is.
static void drain_all(const struct recordings *r)
{
    char socket[DRAIN_SOCKET_MAX], before[DRAIN_SOCKET_MAX] = "";
    for (size_t i = 0; i < r->count; i++) {
        struct drain_line *line;
        if (!drain_find_socket(r->paths[i], socket) || strcmp(socket, before) == 0)
            continue;
        memcpy(before, socket, sizeof before);
        if (drain_line_create(socket, DRAIN_CELLS, &line) != 0)
            continue;
        drain_line_ask(line);
        drain_line_destroy(line);
    }
}

// Opens paths[i]; what cannot be read is taken out of the list with a warning, unless it is all there is.
static int open_all(struct recordings *r, struct error *e)
{
    size_t n = 0;
    int status = 0;
    r->readers = calloc(r->count, sizeof *r->readers);
    r->snapshots = calloc(r->count, sizeof *r->snapshots);
    if (!r->readers || !r->snapshots)
        return error_set(e, -ENOMEM, "out of memory"); // recordings_close frees what there is
    for (size_t i = 0; i < r->count; i++) {
        char *path = r->paths[i];
        r->paths[i] = NULL;
        status = store_reader_open(path, &r->readers[n], e);
        if (status == 0) {
            r->snapshots[n] = store_snapshot_open(r->readers[n]);
            if (!r->snapshots[n]) {
                store_reader_close(r->readers[n]);
                status = error_set(e, -ENOMEM, "out of memory");
            }
        }
        if (status == 0) {
            r->paths[n++] = path;
        } else {
            if (r->count > 1)
                log_warning("%s", e->text);
            free(path);
        }
    }
    r->count = n;
    return n > 0 ? 0 : status;
}

int recordings_find(const struct options *o, char *const *paths, size_t count, struct recordings *out, struct error *e)
{
    *out = (struct recordings){0};
    int status = count == 0 ? add_default(o, out, e) : 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_given(o, out, paths[i], e);
    if (status < 0)
        recordings_close(out);
    return status;
}

int recordings_open(const struct options *o, char *const *paths, size_t count, struct recordings *out, struct error *e)
{
    int status = recordings_find(o, paths, count, out, e);
    if (status == 0) {
        drain_all(out);
        status = open_all(out, e);
    }
    if (status < 0)
        recordings_close(out);
    return status;
}

void recordings_close(struct recordings *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->snapshots && r->snapshots[i])
            store_snapshot_close(r->snapshots[i]);
        if (r->readers && r->readers[i])
            store_reader_close(r->readers[i]);
        free(r->paths[i]);
    }
    free(r->snapshots);
    free(r->readers);
    free(r->paths);
    *r = (struct recordings){0};
}

bool recordings_range(const struct recordings *r, int64_t *first_ns, int64_t *last_ns)
{
    bool any = false;
    for (size_t i = 0; i < r->count; i++) {
        int64_t first, last;
        if (!store_time_range(r->snapshots[i], &first, &last))
            continue;
        if (!any || first < *first_ns)
            *first_ns = first;
        if (!any || last > *last_ns)
            *last_ns = last;
        any = true;
    }
    return any;
}
