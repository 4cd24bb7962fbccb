#include "launch/job.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/json_writer.h"
#include "launch/folder_list.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_FILE "lock"

void job_free(struct job *j)
{
    free(j->command);
    json_decref(j->about);
    *j = (struct job){0};
}

const char *job_name(const struct job *j)
{
    const char *name = json_string_value(json_object_get(j->about, "name"));
    return name ? name : "";
}

// ---------------------------------------------------------------- names

static void copy_name(const char *text, char *out, size_t most)
{
    size_t n = 0;
    for (; text[n] && n < most; n++) {
        char c = text[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || (c == '.' && n > 0);
        out[n] = plain ? c : '_';
    }
    out[n] = 0;
}

void job_choose_id(int64_t now_ns, char out[JOB_ID_MAX + 1])
{
    static const char *const variables[] = {"SONDE_JOB", "SLURM_JOB_ID", "PBS_JOBID"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = getenv(variables[i]);
        if (text && *text) {
            copy_name(text, out, JOB_ID_MAX);
            return;
        }
    }
    time_t seconds = (time_t)(now_ns / NS_PER_S);
    struct tm local;
    char date[32];
    localtime_r(&seconds, &local);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
    snprintf(out, JOB_ID_MAX + 1, "%s-%d", date, (int)getpid());
}

void job_host(char out[JOB_HOST_MAX + 1])
{
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) < 0 || !name[0])
        strcpy(name, "localhost");
    name[strcspn(name, ".")] = 0;
    copy_name(name, out, JOB_HOST_MAX);
}

char *job_command_text(char *const *command)
{
    struct buf text = {0};
    for (size_t i = 0; command[i] && text.size < JOB_COMMAND_MAX; i++) {
        if (i > 0)
            buf_add_char(&text, ' ');
        escape_for_shell(&text, str_of(command[i]));
    }
    if (text.size > JOB_COMMAND_MAX) {
        text.size = JOB_COMMAND_MAX;
        buf_add_str(&text, STR("…"));
    }
    char *out = text.failed ? NULL : strdup(buf_cstr(&text));
    buf_free(&text);
    return out;
}

// ---------------------------------------------------------------- the run folder

static int take_lock(const char *folder, int *lock_fd, struct error *e)
{
    char path[FOLDER_PATH_MAX + sizeof LOCK_FILE + 1];
    snprintf(path, sizeof path, "%s/" LOCK_FILE, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(e, -errno, "cannot write %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int code = errno;
        close(fd);
        return error_set(e, -code, "cannot lock %s: %s", path, strerror(code));
    }
    *lock_fd = fd;
    return 0;
}

static bool exists_in(const char *folder, const char *name)
{
    char path[FOLDER_PATH_MAX + JOB_ID_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct stat info;
    return lstat(path, &info) == 0;
}

int job_make_folder(struct job *j, const char *base, const char *taken, int *lock_fd,
                    struct error *e)
{
    // Checks that FOLDER/agent.sock fits into a Unix socket's path.
    size_t most = FOLDER_SOCKET_MAX - strlen("/agent.sock");
    for (int twin = 1; twin <= FOLDER_TWINS_MAX; twin++) {
        char id[JOB_ID_MAX + 16], path[FOLDER_PATH_MAX + JOB_ID_MAX + 16];
        if (twin == 1)
            snprintf(id, sizeof id, "%s", j->id);
        else
            snprintf(id, sizeof id, "%.*s-%d", JOB_ID_MAX - 5, j->id, twin);
        snprintf(path, sizeof path, "%s/%s", base, id);
        if (strlen(path) > most)
            return error_set(e, -ENAMETOOLONG,
                             "the run folder %.80s… is too long for a socket's path (at most %zu "
                             "bytes): set TMPDIR or "
                             "--run-dir to a shorter one",
                             path, most);
        if (taken && exists_in(taken, id))
            continue;
        if (mkdir(path, 0700) == 0) {
            memcpy(j->folder, path, strlen(path) + 1);
            memcpy(j->id, id, strlen(id) + 1);
            int status = take_lock(j->folder, lock_fd, e);
            if (status < 0)
                folder_remove(j->folder, NULL);
            return status;
        }
        if (errno != EEXIST)
            return error_set(e, -errno, "cannot make run folder %s: %s", path, strerror(errno));
    }
    return error_set(e, -EEXIST, "there are %d jobs called %s in %s", FOLDER_TWINS_MAX, j->id,
                     base);
}

static int lock_of(const char *folder, int how)
{
    char path[FOLDER_PATH_MAX + sizeof LOCK_FILE + 1];
    snprintf(path, sizeof path, "%s/" LOCK_FILE, folder);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (flock(fd, how | LOCK_NB) < 0) {
        int code = errno;
        close(fd);
        return code == EWOULDBLOCK ? -EBUSY : -code;
    }
    return fd;
}

bool job_lives(const char *folder)
{
    int fd = lock_of(folder, LOCK_SH);
    if (fd >= 0)
        close(fd); // this releases the lock
    return fd == -EBUSY;
}

int job_claim(const char *folder)
{
    return lock_of(folder, LOCK_EX);
}

// ---------------------------------------------------------------- job.json

int job_write(const struct job *j, const char *folder, const char *name, struct error *e)
{
    struct buf text = {0};
    struct json_writer w = json_to(&text);
    json_begin_object(&w);
    json_key_string(&w, "format", STR(JOB_FORMAT));
    json_key_string(&w, "version", STR(SONDE_VERSION));
    json_key_string(&w, "job", str_of(j->id));
    json_key_string(&w, "host", str_of(j->host));
    json_key_string(&w, "command", str_of(j->command ? j->command : ""));
    json_key_i64(&w, "pid", j->pid);
    json_key_i64(&w, "level", j->level);
    json_key_double(&w, "rate", j->rate_s);
    json_key_i64(&w, "start_ns", j->start_ns);
    if (j->record[0])
        json_key_string(&w, "record", str_of(j->record));
    if (j->url[0])
        json_key_string(&w, "url", str_of(j->url));
    if (j->certificate[0] && !j->end_ns)
        json_key_string(&w, "certificate", str_of(j->certificate));
    if (j->end_ns) {
        json_key_i64(&w, "end_ns", j->end_ns);
        json_key_i64(&w, "exit_code", j->exit_code);
        json_key_i64(&w, "agent_restarts", j->agent_restarts);
    }
    if (j->keep)
        json_key_bool(&w, "keep", true);
    if (j->emitted != JOB_EMITTED_UNKNOWN)
        json_key_bool(&w, "emitted", j->emitted == JOB_EMITTED);
    char *about = json_dumps(j->about, JSON_COMPACT);
    if (about) {
        json_key(&w, STR("about"));
        json_put_raw(&w, str_of(about));
    }
    free(about);
    json_end_object(&w);
    buf_add_char(&text, '\n');
    int status = text.failed ? error_set(e, -ENOMEM, "out of memory")
                             : folder_write(folder, name, buf_str(&text), e);
    buf_free(&text);
    return status;
}

static void take_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, size, "%s", text ? text : "");
}

static int64_t take_number(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : otherwise;
}

int job_read(const char *path, struct job *j, struct error *e)
{
    *j = (struct job){0};
    struct buf text;
    int status = folder_read(path, JOB_TEXT_MAX, &text, e);
    if (status < 0)
        return status;
    json_t *root = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, NULL);
    buf_free(&text);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, JOB_FORMAT) != 0) {
        bool newer = format && str_starts(str_of(format), STR("sonde run "));
        error_set(e, -EBADMSG,
                  newer ? "%s is of a newer version of sonde" : "%s is not a file of sonde", path);
        json_decref(root);
        return -EBADMSG;
    }
    take_text(root, "job", j->id, sizeof j->id);
    take_text(root, "host", j->host, sizeof j->host);
    take_text(root, "url", j->url, sizeof j->url);
    take_text(root, "record", j->record, sizeof j->record);
    take_text(root, "certificate", j->certificate, sizeof j->certificate);
    const char *command = json_string_value(json_object_get(root, "command"));
    j->command = strdup(command ? command : "");
    j->pid = (pid_t)take_number(root, "pid", 0);
    j->level = (int)take_number(root, "level", 0);
    j->rate_s = json_number_value(json_object_get(root, "rate"));
    j->start_ns = take_number(root, "start_ns", 0);
    j->end_ns = take_number(root, "end_ns", 0);
    j->exit_code = (int)take_number(root, "exit_code", -1);
    j->agent_restarts = (int)take_number(root, "agent_restarts", 0);
    j->keep = json_is_true(json_object_get(root, "keep"));
    const json_t *emitted = json_object_get(root, "emitted");
    if (json_is_boolean(emitted))
        j->emitted = json_is_true(emitted) ? JOB_EMITTED : JOB_EMITTED_NOTHING;
    json_t *about = json_object_get(root, "about");
    if (json_is_object(about))
        j->about = json_incref(about);
    json_decref(root);
    if (!j->command)
        return error_set(e, -ENOMEM, "out of memory");
    return 0;
}

// ---------------------------------------------------------------- lists

static int newest_first(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return folder_list_newest_first(x->start_ns, x->id, y->start_ns, y->id);
}

void job_list_free(struct job *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        job_free(&list[i]);
    free(list);
}

struct where {
    const char *base;
    bool dead;
};

static bool look_at(void *user, const char *name, void *element)
{
    const struct where *where = user;
    struct job *out = element;
    char folder[FOLDER_PATH_MAX], path[FOLDER_PATH_MAX + sizeof JOB_FILE + 1];
    int n = snprintf(folder, sizeof folder, "%s/%s", where->base, name);
    if (n < 0 || n >= (int)sizeof folder)
        return false;
    snprintf(path, sizeof path, "%s/" JOB_FILE, folder);
    // Reads the text first, then the lock: a launcher that is just starting has no text yet, and
    // its job counts as neither running nor dead.
    if (job_read(path, out, NULL) < 0 || job_lives(folder) == where->dead) {
        job_free(out);
        return false;
    }
    memcpy(out->folder, folder, sizeof folder);
    return true;
}

static void release(void *element)
{
    job_free(element);
}

int job_list(const char *base, bool dead, struct job **out, size_t *count, struct error *e)
{
    static const struct folder_list_kind kind = {.size = sizeof(struct job),
                                                 .most = JOB_LIST_MAX,
                                                 .look_at = look_at,
                                                 .compare = newest_first};
    *out = NULL;
    *count = 0;
    struct error why;
    int fd = folder_open_private(base, &why);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0) {
        if (e)
            *e = why;
        return fd;
    }
    DIR *folder = fdopendir(fd);
    if (!folder) {
        int failed = -errno;
        close(fd);
        return error_set(e, failed, "cannot read folder %s: %s", base, strerror(-failed));
    }
    struct where where = {base, dead};
    void *list;
    int status = folder_list(folder, &kind, &where, release, &list, count, e);
    *out = list;
    return status;
}
