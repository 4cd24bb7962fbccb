#include "launch/launch_folder.h"

#include "base/hex.h"
#include "launch/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_file(const char *path, char out[FOLDER_PATH_MAX], struct error *e)
{
    char *full = path ? realpath(path, NULL) : NULL;
    if (path && !full)
        return error_set(e, -errno, "cannot find %s: %s", path, strerror(errno));
    bool fits = !full || strlen(full) < FOLDER_PATH_MAX;
    snprintf(out, FOLDER_PATH_MAX, "%s", full && fits ? full : "");
    free(full);
    return fits ? 0 : error_set(e, -ENAMETOOLONG, "the path of %s is too long", path);
}

static int make_token(struct launch *l, struct error *e)
{
    const char *fixed = l->o->token_file;
    bool keyed = !fixed && l->o->auth_key[0];
    int rc = fixed ? token_read(fixed, true, l->token, e) : keyed ? 0 : token_make(l->token, e);
    if (rc)
        return rc;
    if (keyed)
        snprintf(l->token, sizeof l->token, "%s", l->o->auth_key);
    char line[sizeof l->token + 1];
    snprintf(line, sizeof line, "%s\n", l->token);
    return folder_write(l->job.folder, "token", str_of(line), e);
}

static int make_key(struct launch *l, struct error *e)
{
    uint8_t key[WIRE_KEY_BYTES];
    snprintf(l->key_file, sizeof l->key_file, "%s/key", l->job.folder);
    int status = wire_key_make(l->key_file, key, e);
    if (status == 0)
        hex_write(key, sizeof key, l->key);
    explicit_bzero(key, sizeof key);
    return status;
}

int launch_folder_make(struct launch *l, struct error *e)
{
    job_choose_id(l->job.start_ns, l->job.id);
    int fd = folder_make_private(l->base, e);
    if (fd < 0)
        return fd;
    close(fd);
    int status = job_make_folder(&l->job, l->base, l->runs[0] ? l->runs : NULL, &l->lock_fd, e);
    if (status < 0)
        return status;
    if (l->runs[0])
        snprintf(l->job.record, sizeof l->job.record, "%.*s/%s", FOLDER_PATH_MAX - JOB_ID_MAX - 2,
                 l->runs, l->job.id);
    snprintf(l->token_file, sizeof l->token_file, "%s/token", l->job.folder);
    snprintf(l->hostfile, sizeof l->hostfile, "%s/hostfile", l->job.folder);
    status = make_token(l, e);
    if (status == 0 && (l->o->open_hub || nodes_others(l->nodes)))
        status = make_key(l, e);
    if (status == 0)
        status = job_write(&l->job, l->job.folder, JOB_FILE, e);
    return status;
}

int launch_folder_find_tls(struct launch *l, struct error *e)
{
    int status = find_file(l->o->tls_cert, l->tls_cert, e);
    return status == 0 ? find_file(l->o->tls_key, l->tls_key, e) : status;
}
