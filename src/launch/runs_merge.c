#include "launch/runs_merge.h"

#include "base/full_io.h"
#include "launch/job.h"
#include "launch/runs.h"
#include "launch/runs_index.h"
#include "store/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMPARE_BYTES = 1 << 16 };

struct source {
    const char *path;
    char host[JOB_HOST_MAX + 1], job[JOB_ID_MAX + 1];
    char name[NAME_MAX + 1]; // in the new folder; empty: an equal file has been copied already
};

// ---------------------------------------------------------------- reading the sources

static int read_source(const char *path, struct source *out, struct error *e)
{
    struct store_reader *reader;
    *out = (struct source){.path = path};
    int status = store_reader_open(path, &reader, e);
    if (status)
        return status;
    struct str host = store_reader_meta(reader, STR("host")),
               job = store_reader_meta(reader, STR("job"));
    snprintf(out->host, sizeof out->host, "%.*s", STR_ARG(host));
    snprintf(out->job, sizeof out->job, "%.*s", STR_ARG(job));
    if (store_reader_state(reader) == STORE_LIVE)
        status = error_set(e, -EBUSY, "%s is being written; merge it when its run has ended", path);
    store_reader_close(reader);
    return status;
}

static bool same_bytes(int a, int b)
{
    static char left[COMPARE_BYTES], right[COMPARE_BYTES];
    while (true) {
        ssize_t n = read(a, left, sizeof left);
        if (n <= 0)
            return n == 0 && read(b, right, 1) == 0;
        for (ssize_t got = 0; got < n;) {
            ssize_t m = read(b, right + got, (size_t)(n - got));
            if (m <= 0)
                return false;
            got += m;
        }
        if (memcmp(left, right, (size_t)n) != 0)
            return false;
    }
}

static bool same_file(const char *a, const char *b)
{
    int one = open(a, O_RDONLY | O_CLOEXEC), other = open(b, O_RDONLY | O_CLOEXEC);
    struct stat x, y;
    bool same = one >= 0 && other >= 0 && fstat(one, &x) == 0 && fstat(other, &y) == 0 &&
                x.st_size == y.st_size &&
                ((x.st_dev == y.st_dev && x.st_ino == y.st_ino) || same_bytes(one, other));
    if (one >= 0)
        close(one);
    if (other >= 0)
        close(other);
    return same;
}

static bool is_taken(const struct source *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return true;
    return false;
}

// Chooses the name of file all[at] in the new folder, or leaves the file out.
static void choose_name(struct source *all, size_t at, struct runs_merged *out)
{
    struct source *s = &all[at];
    const char *slash = strrchr(s->path, '/'), *own = slash ? slash + 1 : s->path;
    bool same_host = false;
    for (size_t i = 0; i < at; i++) {
        if (all[i].name[0] && same_file(all[i].path, s->path)) {
            buf_printf(&out->notes, "%s is the same as %s: one of them is copied\n", s->path,
                       all[i].path);
            return;
        }
        same_host |= strcmp(all[i].host, s->host) == 0 && strcmp(all[i].job, s->job) == 0;
    }
    size_t stem = strlen(own) - strlen(".sonde");
    snprintf(s->name, sizeof s->name, "%s", own);
    for (int i = 2; is_taken(all, at, s->name); i++)
        snprintf(s->name, sizeof s->name, "%.*s-%d.sonde", (int)(stem > 240 ? 240 : stem), own, i);
    out->files++;
    out->hosts += !same_host;
    if (same_host)
        buf_printf(&out->notes,
                   "%s is another recording of host %s: it becomes %s, and readers put the points "
                   "of both together\n",
                   s->path, s->host, s->name);
    else if (strcmp(s->name, own) != 0)
        buf_printf(&out->notes, "%s becomes %s: the name is taken\n", s->path, s->name);
}

static size_t count_jobs(const struct source *all, size_t count, struct buf *names)
{
    size_t jobs = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < i && strcmp(all[k].job, all[i].job) != 0)
            k++;
        if (k < i)
            continue;
        buf_printf(names, "%s%s", jobs ? ", " : "", all[i].job[0] ? all[i].job : "(unknown)");
        jobs++;
    }
    return jobs;
}

// ---------------------------------------------------------------- run.json

// Combines the run.json files beside the sources. Returns false if no source of this job has one.
static bool find_run(const struct source *all, size_t count, struct job *out)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        char path[FOLDER_PATH_MAX + 16];
        const char *slash = strrchr(all[i].path, '/');
        struct job j;
        snprintf(path, sizeof path, "%.*s" JOB_RUN_FILE, slash ? (int)(slash + 1 - all[i].path) : 0,
                 all[i].path);
        if (job_read(path, &j, NULL) < 0 || strcmp(j.id, all[i].job) != 0) {
            job_free(&j);
            continue;
        }
        if (!found) {
            *out = j;
            found = true;
            continue;
        }
        out->start_ns = j.start_ns < out->start_ns ? j.start_ns : out->start_ns;
        if (j.end_ns > out->end_ns) {
            out->end_ns = j.end_ns;
            out->exit_code = j.exit_code;
        }
        out->keep |= j.keep;
        job_free(&j);
    }
    return found;
}

// ---------------------------------------------------------------- the folder

static int find_place(const struct runs_merge *r, const char *job, struct runs_merged *out,
                      struct error *e)
{
    struct stat info;
    int n = r->to ? snprintf(out->path, sizeof out->path, "%s", r->to)
                  : snprintf(out->path, sizeof out->path, "%s/%s", r->runs, job);
    if (n >= (int)sizeof out->path)
        return error_set(e, -ENAMETOOLONG, "%.80s… is too long", out->path);
    while (n > 1 && out->path[n - 1] == '/')
        out->path[--n] = 0;
    return lstat(out->path, &info) == 0
               ? error_set(e, -EEXIST, "%s exists already; give another folder with --output",
                           out->path)
               : 0;
}

static int fill(const struct source *all, size_t count, const char *draft, bool describe,
                struct runs_merged *out, struct error *e)
{
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        char copy[FOLDER_PATH_MAX + NAME_MAX + 32];
        snprintf(copy, sizeof copy, "%s/%s", draft, all[i].name);
        if (all[i].name[0])
            status = runs_copy_file(all[i].path, copy, e);
    }
    struct job run = {0};
    if (!status && describe && find_run(all, count, &run)) {
        status = runs_describe(&run, draft, e);
        out->described = !status;
        job_free(&run);
    }
    return status;
}

static int make_folder(const struct source *all, size_t count, bool describe,
                       struct runs_merged *out, struct error *e)
{
    char draft[FOLDER_PATH_MAX + 16];
    const char *slash = strrchr(out->path, '/'), *name = slash ? slash + 1 : out->path;
    snprintf(draft, sizeof draft, "%.*s.%s.merging", (int)(name - out->path), out->path, name);
    int status = folder_make_all(draft, e);
    if (!status)
        status = fill(all, count, draft, describe, out, e);
    if (!status && rename(draft, out->path) < 0)
        status =
            error_set(e, -errno, "cannot rename %s to %s: %s", draft, out->path, strerror(errno));
    if (status)
        folder_remove(draft, NULL);
    else
        runs_index_forget(out->path);
    return status;
}

int runs_merge(const struct runs_merge *r, struct runs_merged *out, struct error *e)
{
    struct source *all = calloc(r->count + 1, sizeof *all);
    struct buf jobs = {0};
    *out = (struct runs_merged){0};
    int status = all ? 0 : error_set(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < r->count && !status; i++)
        status = read_source(r->files[i], &all[i], e);
    for (size_t i = 0; i < r->count && !status; i++)
        choose_name(all, i, out);
    if (!status)
        out->jobs = count_jobs(all, r->count, &jobs);
    if (!status && out->jobs > 1 && !r->several_jobs)
        status = error_set(e, -EINVAL,
                           "these are recordings of %zu jobs (%s): --several-jobs puts them into "
                           "one folder all the same",
                           out->jobs, buf_cstr(&jobs));
    if (!status && out->jobs > 1 && !r->to)
        status = error_set(e, -EINVAL, "several jobs have no id for their folder: give --output");
    if (!status)
        status = find_place(r, all[0].job, out, e);
    if (!status)
        status = make_folder(all, r->count, out->jobs == 1, out, e);
    buf_free(&jobs);
    free(all);
    if (status) {
        buf_free(&out->notes);
        out->notes = (struct buf){0};
    }
    return status;
}
