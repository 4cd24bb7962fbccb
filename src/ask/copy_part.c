#include "ask/copy_part.h"

#include "store/read.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { DRAFT_RANDOM_DIGITS = 16 };

// True if another process holds the draft's lock, because it copies into this folder.
static bool is_being_written(const char *part)
{
    struct store_reader *r;
    if (store_reader_open(part, &r, NULL) != 0)
        return false;
    bool live = store_reader_state(r) == STORE_LIVE;
    store_reader_close(r);
    return live;
}

// True if `name` is the name of a draft of HOST.sonde.
static bool is_draft(struct str name, struct str host)
{
    return name.size == host.size + 1 + DRAFT_RANDOM_DIGITS + strlen(".part") &&
           str_starts(name, host) && name.data[host.size] == '.' && str_ends(name, STR(".part")) &&
           strspn(name.data + host.size + 1, "0123456789abcdef") == DRAFT_RANDOM_DIGITS;
}

// Removes the drafts that killed processes left behind. Returns -EBUSY if another process is
// writing a draft.
static int clear_drafts(const char *folder, struct str host)
{
    DIR *dir = opendir(folder);
    int r = dir ? 0 : -errno;
    for (struct dirent *d = dir ? readdir(dir) : NULL; d && r == 0; d = readdir(dir)) {
        char *path = NULL;
        if (!is_draft(str_of(d->d_name), host))
            continue;
        if (asprintf(&path, "%s/%s", folder, d->d_name) < 0)
            r = -ENOMEM;
        else if (is_being_written(path))
            r = -EBUSY;
        else
            unlink(path);
        free(path);
    }
    if (dir)
        closedir(dir);
    return r;
}

int copy_part_name(const char *folder, struct str host, char **out)
{
    uint64_t random = 0;
    *out = NULL;
    int r = clear_drafts(folder, host);
    if (r)
        return r;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    if (asprintf(out, "%s/%.*s.%0*llx.part", folder, STR_ARG(host), (int)DRAFT_RANDOM_DIGITS,
                 (unsigned long long)random) < 0) {
        *out = NULL;
        return -ENOMEM;
    }
    return 0;
}
