#include "client/target.h"

#include "launch/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { JOBS_SHOWN_MAX = 5 }; // maximum number of ids in a message
#define NEWEST_RECORDING "last"

// Returns the caller's value, else the environment's; NULL if both are unset.
static const char *given(const char *option, const char *name)
{
    const char *value = option ? option : getenv(name);
    return value && *value ? value : NULL;
}

static const char *run_dir(const struct target_options *o)
{
    return given(o->run_dir, "SONDE_RUN_DIR");
}

// ---------------------------------------------------------------- jobs on this machine

static bool has_id(const struct job *j, const char *id)
{
    return strcmp(j->id, id) == 0;
}

static bool has_name(const struct job *j, const char *name)
{
    return strcmp(job_name(j), name) == 0;
}

typedef bool is_meant_fn(const struct job *j, const char *word);

// Finds the newest matching job (of all jobs if `word` is NULL) that runs, or with `dead` whose
// launcher was killed. Returns -ENOENT, without a message, if there is none.
static int look_here(const struct target_options *o, is_meant_fn *is_meant, const char *word,
                     bool dead, struct job *out, struct error *e)
{
    char base[FOLDER_PATH_MAX];
    struct job *jobs;
    size_t count, i = 0;
    int rc = folder_base_path(run_dir(o), base, e);
    if (rc == 0)
        rc = job_list(base, dead, &jobs, &count, e);
    if (rc < 0)
        return rc;
    while (i < count && word && !is_meant(&jobs[i], word))
        i++;
    bool found = i < count;
    if (found) {
        *out = jobs[i];
        jobs[i] = (struct job){0};
    }
    job_list_free(jobs, count);
    return found ? 0 : -ENOENT;
}

static bool find_here(const struct target_options *o, is_meant_fn *is_meant, const char *word,
                      bool dead, struct job *out)
{
    return look_here(o, is_meant, word, dead, out, NULL) == 0;
}

int target_running(const char *word, const struct target_options *options, struct job *out,
                   struct error *e)
{
    static const struct target_options none = {0};
    const struct target_options *o = options ? options : &none;
    word = word && *word ? word : given(o->job, "SONDE_JOB");
    struct error why = {0};
    int rc = look_here(o, has_id, word, false, out, &why);
    if (rc == -ENOENT && word && strcmp(word, NEWEST_RECORDING) != 0)
        rc = look_here(o, has_name, word, false, out, &why);
    if (rc == -ENOENT && word)
        return error_set(e, rc, "job %.80s does not run here; sonde status lists running jobs",
                         word);
    if (rc == -ENOENT)
        return error_set(e, rc, "no job runs here; start one with sonde run");
    if (rc < 0 && e)
        *e = why;
    return rc;
}

static bool find_kept(const struct target_options *o, const char *id, char path[FOLDER_PATH_MAX])
{
    char runs[FOLDER_PATH_MAX];
    if (strchr(id, '/') || strlen(id) > JOB_ID_MAX ||
        runs_path(given(o->runs, "SONDE_RUNS"), runs, NULL) < 0)
        return false;
    int n = snprintf(path, FOLDER_PATH_MAX, "%s/%s", runs, id);
    bool found = n > 0 && n < FOLDER_PATH_MAX && runs_is_run(path);
    if (!found)
        path[0] = 0;
    return found;
}

// Finds the newest recording of this name.
static bool find_named_kept(const struct target_options *o, const char *name,
                            char path[FOLDER_PATH_MAX])
{
    char runs[FOLDER_PATH_MAX];
    struct runs_entry *list;
    size_t count, i = 0;
    if (runs_path(given(o->runs, "SONDE_RUNS"), runs, NULL) < 0 ||
        runs_list(runs, &list, &count, NULL) < 0)
        return false;
    while (i < count && strcmp(list[i].name, name) != 0)
        i++;
    if (i < count)
        memcpy(path, list[i].path, FOLDER_PATH_MAX);
    free(list);
    return i < count;
}

static bool find_newest_kept(const struct target_options *o, char path[FOLDER_PATH_MAX])
{
    char runs[FOLDER_PATH_MAX];
    struct runs_entry *list;
    size_t count;
    if (runs_path(given(o->runs, "SONDE_RUNS"), runs, NULL) < 0 ||
        runs_list(runs, &list, &count, NULL) < 0)
        return false;
    if (count > 0)
        memcpy(path, list[0].path, FOLDER_PATH_MAX);
    free(list);
    return count > 0;
}

void target_each_id(const struct target_options *o, target_id_fn *take, void *user)
{
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX];
    struct job *jobs;
    struct runs_entry *kept;
    size_t count;
    if (folder_base_path(run_dir(o), base, NULL) == 0 &&
        job_list(base, false, &jobs, &count, NULL) == 0) {
        for (size_t i = 0; i < count; i++)
            take(user, str_of(jobs[i].id), true);
        job_list_free(jobs, count);
    }
    if (runs_path(given(o->runs, "SONDE_RUNS"), runs, NULL) == 0 &&
        runs_list(runs, &kept, &count, NULL) == 0) {
        for (size_t i = 0; i < count; i++)
            take(user, str_of(strrchr(kept[i].path, '/') + 1), false);
        free(kept);
    }
}

struct shown {
    struct buf text;
    bool running;
    size_t count;
};

static void show_id(void *user, struct str id, bool running)
{
    struct shown *s = user;
    if (running == s->running && s->count++ < JOBS_SHOWN_MAX)
        buf_printf(&s->text, "%s%.*s", s->count > 1 ? ", " : "", STR_ARG(id));
}

void target_describe_ids(const struct target_options *o, struct buf *out)
{
    static const char *const titles[] = {"recorded: ", "running: "};
    for (int running = 1; running >= 0; running--) {
        struct shown s = {.running = running};
        target_each_id(o, show_id, &s);
        if (s.count)
            buf_printf(out, "%s%s%s%s", out->size ? "; " : "", titles[running], buf_cstr(&s.text),
                       s.count > JOBS_SHOWN_MAX ? ", …" : "");
        buf_free(&s.text);
    }
}

// ---------------------------------------------------------------- resolving a name

static int take_path(struct target *t, const char *path, struct error *e)
{
    if (strlen(path) >= sizeof t->path)
        return error_set(e, -ENAMETOOLONG, "the path is longer than %d bytes: %.60s…",
                         FOLDER_PATH_MAX - 1, path);
    t->kind = TARGET_RECORDING;
    if (path != t->path)
        memcpy(t->path, path, strlen(path) + 1);
    return 0;
}

static int take_job(struct target *t, struct job *job, const char *token,
                    const struct target_options *o, struct error *e)
{
    bool asked = job->url[0] && !o->files;
    t->kind = asked ? TARGET_JOB : TARGET_RECORDING;
    memcpy(t->path, job->folder, sizeof t->path);
    int rc = asked ? http_client_create_for(job, token, &t->client, e) : 0;
    job_free(job);
    return rc;
}

// Finds the first match: a running job, a job with a dead launcher, a recorded job; each by id,
// then by name. Returns -ENOENT, without a message, if there is none.
static int take_id(struct target *t, const char *id, const char *token,
                   const struct target_options *o, const char **state, struct error *e)
{
    struct job job;
    if (find_here(o, has_id, id, false, &job)) {
        *state = "running job";
        return take_job(t, &job, token, o, e);
    }
    if (find_here(o, has_id, id, true, &job)) {
        *state = "job whose launcher was killed:";
        int rc = take_path(t, job.folder, e);
        job_free(&job);
        return rc;
    }
    *state = "recording";
    if (find_kept(o, id, t->path))
        return take_path(t, t->path, e);
    if (strcmp(id, NEWEST_RECORDING) == 0)
        return find_newest_kept(o, t->path) ? take_path(t, t->path, e) : -ENOENT;
    if (find_here(o, has_name, id, false, &job)) {
        *state = "running job";
        return take_job(t, &job, token, o, e);
    }
    return find_named_kept(o, id, t->path) ? take_path(t, t->path, e) : -ENOENT;
}

static int no_job(const char *id, const struct target_options *o, struct error *e)
{
    struct buf others = {0};
    target_describe_ids(o, &others);
    error_set(e, -ENOENT, "there is no job %.80s, neither running nor recorded%s%s", id,
              others.size ? "; " : "", buf_cstr(&others));
    buf_free(&others);
    return -ENOENT;
}

// True if SONDE_URL is the address of the job. After the job's end it is not.
static bool url_counts(const struct target_options *o, const char *id)
{
    const char *own = given(NULL, "SONDE_JOB");
    char path[FOLDER_PATH_MAX];
    struct job job;
    if (o->files || !given(NULL, "SONDE_URL") || (o->job && !(own && strcmp(own, o->job) == 0)))
        return false;
    if (!id || !find_kept(o, id, path))
        return true;
    bool runs = find_here(o, has_id, id, false, &job);
    if (runs)
        job_free(&job);
    return runs;
}

static int find_default(struct target *t, const char *token, const struct target_options *o,
                        struct error *e)
{
    const char *id = given(o->job, "SONDE_JOB"), *state = "running job";
    struct job job;
    if (url_counts(o, id)) {
        int rc = http_client_create(NULL, token, &t->client, e);
        if (!rc)
            snprintf(t->what, sizeof t->what, "running job %s",
                     id ? id : http_client_url(t->client));
        return rc;
    }
    if (id) {
        int rc = take_id(t, id, token, o, &state, e);
        snprintf(t->what, sizeof t->what, "%s %.64s", state, id);
        return rc == -ENOENT && !t->path[0] ? no_job(id, o, e) : rc;
    }
    int rc = 0;
    if (find_here(o, NULL, NULL, false, &job))
        rc = take_job(t, &job, token, o, e);
    else if (find_newest_kept(o, t->path))
        rc = take_path(t, t->path, e), state = "recording";
    else
        return error_set(e, -ENOENT,
                         "no job runs here and none is recorded; start one with sonde run");
    snprintf(t->what, sizeof t->what, "%s %s", state, strrchr(t->path, '/') + 1);
    return rc;
}

int target_find(const char *where, const char *token, const struct target_options *options,
                struct target *out, struct error *e)
{
    static const struct target_options none = {0};
    const struct target_options *o = options ? options : &none;
    const char *state;
    struct stat info;
    *out = (struct target){0};
    if (!where || !*where)
        return find_default(out, token, o, e);
    if (strstr(where, "://") && o->files)
        return error_set(
            e, -EINVAL, "'%.200s' is an address; here a file, a folder or the id of a job is meant",
            where);
    if (strstr(where, "://"))
        return http_client_create(where, token, &out->client, e);
    if (stat(where, &info) == 0)
        return take_path(out, where, e);
    int code = errno;
    if (code != ENOENT || strchr(where, '/'))
        return error_set(e, -code, "cannot open %.200s: %s", where, strerror(code));
    int rc = take_id(out, where, token, o, &state, e);
    if (rc != -ENOENT || out->path[0])
        return rc;
    struct buf others = {0};
    target_describe_ids(o, &others);
    error_set(e, rc, "'%.200s' is not a file, folder, job or address%s%s", where,
              others.size ? "; " : "", buf_cstr(&others));
    buf_free(&others);
    return rc;
}

void target_free(struct target *t)
{
    http_client_destroy(t->client);
    t->client = NULL;
}
