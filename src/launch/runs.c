#include "launch/runs.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/home.h"
#include "launch/codes.h"
#include "launch/folder_list.h"
#include "launch/parameters.h"
#include "store/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_PIECE_BYTES = 1 << 20 };

int runs_path(const char *runs, char out[FOLDER_PATH_MAX], struct error *e)
{
    int n;
    if (runs && runs[0] == '/') {
        n = snprintf(out, FOLDER_PATH_MAX, "%s", runs);
    } else if (runs) {
        char here[FOLDER_PATH_MAX];
        if (!getcwd(here, sizeof here))
            return error_set(e, -errno, "cannot find the working folder: %s", strerror(errno));
        n = snprintf(out, FOLDER_PATH_MAX, "%s/%s", here, runs);
    } else {
        const char *home = home_folder();
        if (!home)
            return error_set(e, -ENOENT,
                             "there is no home folder to keep recordings in: set SONDE_RUNS, or "
                             "use --record DIR or --no-record");
        n = snprintf(out, FOLDER_PATH_MAX, "%s/.local/state/sonde/runs", home);
    }
    if (n < 0 || n >= FOLDER_PATH_MAX)
        return error_set(e, -ENAMETOOLONG, "the path of the recordings is too long");
    return 0;
}

static bool is_run(const char *folder, const char *job)
{
    char path[FOLDER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, folder);
    struct job j;
    bool is = job_read(path, &j, NULL) == 0 && (!job || strcmp(j.id, job) == 0);
    job_free(&j);
    return is;
}

bool runs_is_run(const char *folder)
{
    return is_run(folder, NULL);
}

// ---------------------------------------------------------------- keeping

int runs_copy_file(const char *from, const char *to, struct error *e)
{
    struct atomic_file out;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0)
        return error_set(e, -errno, "cannot read %s: %s", from, strerror(errno));
    int status = atomic_file_begin(&out, to);
    if (status == 0) {
        ssize_t n;
        do
            n = sendfile(out.fd, in, NULL, COPY_PIECE_BYTES);
        while (n > 0 || (n < 0 && errno == EINTR));
        status = atomic_file_end(&out, n < 0 ? -errno : 0, ATOMIC_FILE_DURABLE);
    }
    close(in);
    return status ? error_set(e, status, "cannot write %s: %s", to, strerror(-status)) : 0;
}

static int move_file(const char *from, const char *to, struct error *e)
{
    if (rename(from, to) == 0)
        return 0;
    if (errno != EXDEV)
        return error_set(e, -errno, "cannot move %s to %s: %s", from, to, strerror(errno));
    int status = runs_copy_file(from, to, e);
    if (status == 0)
        unlink(from);
    return status;
}

static int move_all(const char *run_folder, const char *to, struct error *e)
{
    int status = folder_make_all(to, e);
    if (status)
        return status;
    DIR *folder = opendir(run_folder);
    if (!folder)
        return error_set(e, -errno, "cannot read folder %s: %s", run_folder, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry && status == 0; entry = readdir(folder)) {
        char from[FOLDER_PATH_MAX + 256], into[FOLDER_PATH_MAX + 256], place[FOLDER_PATH_MAX];
        if (!folder_is_recording(entry->d_name))
            continue;
        snprintf(from, sizeof from, "%s/%s", run_folder, entry->d_name);
        snprintf(into, sizeof into, "%s/%s", to, entry->d_name);
        if (strlen(into) >= FOLDER_PATH_MAX)
            status = error_set(e, -ENAMETOOLONG, "the path %.80s… is too long", into);
        else if (realpath(from, place)) // the agent leaves a link if it moves its file elsewhere
            status = move_file(place, into, e);
        else
            status = error_set(e, -errno, "cannot find %s: %s", from, strerror(errno));
    }
    closedir(folder);
    return status;
}

int runs_describe(const struct job *j, const char *to, struct error *e)
{
    struct parameters parameters = {0};
    struct job run = *j;
    parameters_add_folder(&parameters, to);
    run.about = j->about ? json_copy(j->about) : json_object();
    parameters_describe(&parameters, run.about);
    int status = job_write(&run, to, JOB_RUN_FILE, e);
    json_decref(run.about);
    parameters_free(&parameters);
    return status;
}

int runs_keep(const struct job *j, const char *run_folder, const char *to, struct error *e)
{
    int status = move_all(run_folder, to, e);
    return status == 0 ? runs_describe(j, to, e) : status;
}

int runs_join(const struct job *j, const char *run_folder, const char *to, bool told,
              struct error *e)
{
    told = told || is_run(to, j->id);
    if (!told && runs_is_run(to))
        return error_set(e, -EEXIST, "%s holds a recording already", to);
    int status = move_all(run_folder, to, e);
    return status == 0 && !told ? runs_describe(j, to, e) : status;
}

// ---------------------------------------------------------------- listing

struct runs_size runs_measure(const char *path, bool follow)
{
    struct runs_size size = {0};
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        struct stat info;
        if (fstatat(dirfd(folder), entry->d_name, &info, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(info.st_mode))
            continue;
        size.bytes += (uint64_t)info.st_blocks * 512;
        size.files += folder_is_recording(entry->d_name);
    }
    if (folder)
        closedir(folder);
    return size;
}

static const char *name_of(const struct runs_entry *one)
{
    return strrchr(one->path, '/') + 1;
}

static int newest_first(const void *a, const void *b)
{
    const struct runs_entry *x = a, *y = b;
    return folder_list_newest_first(x->start_ns, name_of(x), y->start_ns, name_of(y));
}

static int grade_of(const struct job *j)
{
    bool is_short = j->end_ns && j->end_ns - j->start_ns < RUNS_SHORT_S * (int64_t)NS_PER_S;
    bool nothing = j->emitted == JOB_EMITTED_NOTHING;
    bool unstarted = j->exit_code == LAUNCH_NOT_FOUND || j->exit_code == LAUNCH_NOT_EXECUTABLE;
    return is_short && nothing ? 2 + unstarted : is_short || nothing;
}

struct looking {
    const char *runs;
    bool described;
    bool failed;          // no memory
    struct buf *left_out; // NULL: the caller does not need the names
};

// Accepts our own runs: folders, not links, that belong to us and contain our run.json.
static bool look_at(void *user, const char *name, void *element)
{
    struct looking *l = user;
    struct runs_entry *out = element;
    struct stat info;
    int n = snprintf(out->path, sizeof out->path, "%s/%s", l->runs, name);
    if (n < 0 || n >= (int)sizeof out->path || lstat(out->path, &info) < 0 ||
        !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return false;
    char path[FOLDER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, out->path);
    struct job j;
    struct error why;
    int rc = job_read(path, &j, &why);
    bool is = rc == 0;
    if (l->left_out && rc && rc != -ENOENT && rc != -ENOTDIR)
        buf_printf(l->left_out, "%s\n", why.text);
    snprintf(out->name, sizeof out->name, "%s", job_name(&j));
    out->start_ns = j.start_ns;
    out->grade = grade_of(&j);
    out->keep = j.keep;
    out->job = is && l->described ? malloc(sizeof *out->job) : NULL;
    l->failed |= is && l->described && !out->job;
    if (out->job)
        *out->job = j;
    else
        job_free(&j);
    if (is)
        out->size = runs_measure(out->path, false);
    return is;
}

bool runs_look(const char *runs, const char *name, struct runs_entry *out)
{
    *out = (struct runs_entry){0};
    return look_at(&(struct looking){.runs = runs}, name, out);
}

static void release(void *element)
{
    struct runs_entry *one = element;
    if (one->job)
        job_free(one->job);
    free(one->job);
}

void runs_list_free(struct runs_entry *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        release(&list[i]);
    free(list);
}

static int list_runs(struct looking *l, struct runs_entry **out, size_t *count, struct error *e)
{
    static const struct folder_list_kind kind = {.size = sizeof(struct runs_entry),
                                                 .most = FOLDER_LIST_ENTRIES_MAX,
                                                 .look_at = look_at,
                                                 .compare = newest_first};
    *out = NULL;
    *count = 0;
    DIR *folder = opendir(l->runs);
    if (!folder)
        return errno == ENOENT
                   ? 0
                   : error_set(e, -errno, "cannot read folder %s: %s", l->runs, strerror(errno));
    void *list;
    int status = folder_list(folder, &kind, l, release, &list, count, e);
    *out = list;
    if (l->failed && !status) {
        runs_list_free(*out, *count);
        *out = NULL;
        *count = 0;
        return error_set(e, -ENOMEM, "out of memory");
    }
    return status;
}

int runs_list(const char *runs, struct runs_entry **out, size_t *count, struct error *e)
{
    return list_runs(&(struct looking){.runs = runs}, out, count, e);
}

int runs_list_described(const char *runs, struct runs_entry **out, size_t *count,
                        struct buf *left_out, struct error *e)
{
    return list_runs(&(struct looking){.runs = runs, .described = true, .left_out = left_out}, out,
                     count, e);
}

bool runs_being_written(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return true; // cannot be determined, so the run stays
    bool live = false;
    for (struct dirent *entry = readdir(folder); entry && !live; entry = readdir(folder)) {
        char file[FOLDER_PATH_MAX + 256];
        struct store_reader *reader;
        if (!folder_is_recording(entry->d_name))
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (store_reader_open(file, &reader, NULL) < 0)
            continue;
        live = store_reader_state(reader) == STORE_LIVE;
        store_reader_close(reader);
    }
    closedir(folder);
    return live;
}
