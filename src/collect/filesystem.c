// filesystem.c - usage of the file systems of the run folder and of /tmp.
//
// statvfs on a network file system does not return while the server is unreachable. So each folder
// is read in a thread of its own (deadline.h) every RATE_S seconds. A folder that hangs is left out
// until it answers, and the source gives the reason.
#include "collect/deadline.h"
#include "collect/source.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

enum { RATE_S = 5 }; // seconds between samples

enum { FOLDERS_MAX = 2, PATH_SIZE = 4096 };

struct folder {
    char path[PATH_SIZE];
    int failed; // of the last call
    struct statvfs about;
};

struct filesystem {
    struct folder *folders[FOLDERS_MAX];
    struct deadline *deadlines[FOLDERS_MAX];
    ptrdiff_t instances[FOLDERS_MAX];
    size_t count;
};

static void ask(void *user)
{
    struct folder *folder = user;
    folder->failed = statvfs(folder->path, &folder->about) == 0 ? 0 : -errno;
}

static void put_folder(struct source *s, double *values, ptrdiff_t instance,
                       const struct statvfs *about)
{
    double block = (double)(about->f_frsize ? about->f_frsize : about->f_bsize);
    source_put_at(s, values, instance, METRIC_FILESYSTEM_SIZE, (double)about->f_blocks * block);
    source_put_at(s, values, instance, METRIC_FILESYSTEM_FREE, (double)about->f_bavail * block);
    // Like df, the share of the space that users can have. Some file systems have no sizes, or no
    // fixed number of files.
    fsblkcnt_t used = about->f_blocks - about->f_bfree;
    if (about->f_blocks && about->f_bfree <= about->f_blocks && used + about->f_bavail > 0)
        source_put_at(s, values, instance, METRIC_FILESYSTEM_USED_PERCENT,
                      100 * (double)used / (double)(used + about->f_bavail));
    if (about->f_files) {
        source_put_at(s, values, instance, METRIC_FILESYSTEM_INODES, (double)about->f_files);
        source_put_at(s, values, instance, METRIC_FILESYSTEM_INODES_FREE, (double)about->f_favail);
    }
}

static int filesystem_sample(struct source *s, double *values)
{
    struct filesystem *f = s->state;
    int failed = 0;
    size_t answered = 0;
    for (size_t i = 0; i < f->count; i++) {
        const char *tag = s->instances[f->instances[i]].tags[0];
        int64_t late_ns;
        int code = source_ask(s, f->deadlines[i], &late_ns);
        if (code == -ETIMEDOUT) {
            failed = source_fail(s, code, "%s has not answered for %.1f s: left out until it does",
                                 tag, (double)late_ns / NS_PER_S);
            snprintf(s->hangs, sizeof s->hangs, "%s", tag);
            s->hangs_ns = late_ns;
            s->owes = s->owes || source_recent(late_ns);
            continue;
        }
        if (f->folders[i]->failed) {
            failed = source_fail(s, f->folders[i]->failed, "cannot ask about %s: %s", tag,
                                 strerror(-f->folders[i]->failed));
        } else if (code == 0) {
            put_folder(s, values, f->instances[i], &f->folders[i]->about);
            answered++;
            if (late_ns && !failed)
                source_late(s, tag, late_ns);
        }
        if (code == 0)
            deadline_done(f->deadlines[i], !source_is_seldom(s));
    }
    if (!s->late_only)
        source_put(s, values, METRIC_FILESYSTEMS, (double)answered);
    return answered ? 0 : failed;
}

static void add_folder(struct source *s, const char *root, const char *path)
{
    struct filesystem *f = s->state;
    struct folder *folder = calloc(1, sizeof *folder);
    if (!folder)
        return;
    int size = snprintf(folder->path, sizeof folder->path, "%s%s", root, path);
    // If the path is too long for a tag, its end is used.
    size_t length = strlen(path),
           skipped = length < SOURCE_TAG_SIZE ? 0 : length - (SOURCE_TAG_SIZE - 1);
    struct str tag = str_of(path + skipped);
    int failed = -ENAMETOOLONG;
    ptrdiff_t instance = size > 0 && size < PATH_SIZE && source_find(s, tag, STR("")) < 0
                             ? source_instance(s, tag, STR(""))
                             : -1;
    if (instance < 0 ||
        (failed = deadline_create(ask, free, folder, &f->deadlines[f->count])) != 0) {
        if (instance >= 0)
            source_ignore(s, instance);
        source_fail(s, failed, "cannot start a thread to ask about %s: %s", path,
                    strerror(-failed));
        free(folder);
        return;
    }
    f->folders[f->count] = folder;
    f->instances[f->count++] = instance;
}

static int filesystem_open(struct source *s)
{
    struct filesystem *f = calloc(1, sizeof *f);
    if (!f)
        return source_fail(s, -ENOMEM, "no memory");
    s->state = f;
    if (s->options->folder && s->options->folder[0])
        add_folder(s, "", s->options->folder);
    add_folder(s, s->options->root ? s->options->root : "", "/tmp");
    if (f->count)
        return 0;
    free(f);
    return -EAGAIN; // add_folder has set the reason
}

static void filesystem_close(struct source *s)
{
    struct filesystem *f = s->state;
    for (size_t i = 0; i < f->count; i++)
        deadline_destroy(f->deadlines[i]); // frees the folder
    free(f);
}

const struct source_kind source_filesystem = {
    .name = {"filesystem", 10},
    .rate_s = RATE_S,
    .open = filesystem_open,
    .sample = filesystem_sample,
    .close = filesystem_close,
    .keys = {"folder"},
    .tagged_from = METRIC_FILESYSTEM_SIZE,
    .tagged_to = METRIC_FILESYSTEM_INODES_FREE,
};
