#include "launch/runs_move.h"

#include "launch/job.h"
#include "launch/runs.h"
#include "launch/runs_index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(const char *folder, struct error *e)
{
    if (!runs_is_run(folder))
        return error_set(e, -EINVAL, "%s is no recording of a run: it has no " JOB_RUN_FILE,
                         folder);
    if (runs_being_written(folder))
        return error_set(e, -EBUSY, "%s is being written; try again when its run has ended",
                         folder);
    return 0;
}

int runs_rename(const char *folder, const char *name, struct error *e)
{
    char path[FOLDER_PATH_MAX + 16];
    struct buf text;
    int status = check(folder, e);
    snprintf(path, sizeof path, "%s/" JOB_RUN_FILE, folder);
    if (!status)
        status = folder_read(path, JOB_TEXT_MAX, &text, e);
    if (status)
        return status;
    json_t *root = json_loadb(text.data, text.size, 0, NULL),
           *about = json_object_get(root, "about");
    buf_free(&text);
    if (root && !json_is_object(about)) {
        about = json_object();
        json_object_set_new(root, "about", about);
    }
    char *changed = json_object_set_new(about, "name", json_string(name)) == 0
                        ? json_dumps(root, JSON_COMPACT)
                        : NULL;
    json_decref(root);
    if (!changed)
        return error_set(e, -ENOMEM, "out of memory");
    struct buf line = {0};
    buf_printf(&line, "%s\n", changed);
    status = line.failed ? error_set(e, -ENOMEM, "out of memory")
                         : folder_write(folder, JOB_RUN_FILE, buf_str(&line), e);
    buf_free(&line);
    free(changed);
    return status;
}

// ---------------------------------------------------------------- moving

static int copy_all(const char *from, const char *to, struct error *e)
{
    int status = 0;
    DIR *folder = opendir(from);
    if (!folder)
        return error_set(e, -errno, "cannot read folder %s: %s", from, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry && !status; entry = readdir(folder)) {
        char source[FOLDER_PATH_MAX + 256], copy[FOLDER_PATH_MAX + 512];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(copy, sizeof copy, "%s/%s", to, entry->d_name);
        if (lstat(source, &info) < 0 || !S_ISREG(info.st_mode))
            status = error_set(e, -EINVAL, "%s is not a file: move it elsewhere first", source);
        else
            status = runs_copy_file(source, copy, e);
    }
    closedir(folder);
    return status;
}

static int move_across(const char *from, const char *to, struct error *e)
{
    char draft[FOLDER_PATH_MAX + 16];
    const char *name = strrchr(to, '/') + 1;
    snprintf(draft, sizeof draft, "%.*s.%s.moving", (int)(name - to), to, name);
    if (mkdir(draft, 0700) < 0)
        return error_set(e, -errno, "cannot make %s: %s", draft, strerror(errno));
    int status = copy_all(from, draft, e);
    if (!status && rename(draft, to) < 0)
        status = error_set(e, -errno, "cannot rename %s to %s: %s", draft, to, strerror(errno));
    if (status) {
        folder_remove(draft, NULL);
        return status;
    }
    return folder_remove(from, e);
}

// Makes the path absolute, without "./" in front and "/" at its end.
static int take_path(const char *path, char out[FOLDER_PATH_MAX], struct error *e)
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    char here[FOLDER_PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return error_set(e, -errno, "cannot find the working folder: %s", strerror(errno));
    int n = snprintf(out, FOLDER_PATH_MAX, "%s%s%.*s", here, here[0] ? "/" : "", (int)size, path);
    return n < FOLDER_PATH_MAX ? 0 : error_set(e, -ENAMETOOLONG, "%.80s… is too long", path);
}

int runs_move(const char *folder, const char *to, char out[FOLDER_PATH_MAX], struct error *e)
{
    char from[FOLDER_PATH_MAX];
    struct stat info;
    int status = check(folder, e);
    if (!status)
        status = take_path(folder, from, e);
    if (!status)
        status = take_path(to, out, e);
    if (status)
        return status;
    if (stat(out, &info) == 0 && S_ISDIR(info.st_mode)) {
        size_t size = strlen(out);
        int n = snprintf(out + size, FOLDER_PATH_MAX - size, "%s", strrchr(from, '/'));
        if (n >= (int)(FOLDER_PATH_MAX - size))
            return error_set(e, -ENAMETOOLONG, "%.80s… is too long", to);
    }
    if (lstat(out, &info) == 0)
        return error_set(e, -EEXIST, "%s exists already", out);
    if (rename(from, out) < 0)
        status = errno == EXDEV
                     ? move_across(from, out, e)
                     : error_set(e, -errno, "cannot move %s to %s: %s", from, out, strerror(errno));
    if (!status)
        runs_index_forget(out);
    return status;
}
