// nfs.c - the NFS client: calls and retransmissions (/proc/net/rpc/nfs), bytes of each mount
// (/proc/self/mountstats).
//
//   rpc 1234 5 1234                     calls, retransmissions, refreshed credentials
//
//   device server:/home mounted on /home with fstype nfs4 statvers=1.1
//           bytes:  1 2 3 4 5 6 7 8     read and written by programs, the same with O_DIRECT, from
//                                       and to the server, pages
//
// The kernel answers from its own counters and asks no server. But the list can be long, so the
// source reads it every RATE_S seconds, in a thread of its own.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

enum { RATE_S = 5 }; // seconds between samples

enum { NUMBERS = 6, FROM_SERVER = 4, TO_SERVER = 5 };

struct nfs {
    struct procfile calls, mounts; // fd < 0 = missing
};

static bool put_calls(struct source *s, double *values, struct str text)
{
    struct str line;
    while (scan_line(&text, &line)) {
        uint64_t number;
        if (!str_eq(str_word(&line), STR("rpc")) || !scan_u64(&line, &number))
            continue;
        source_put(s, values, METRIC_NFS_CALLS, (double)number);
        if (scan_u64(&line, &number))
            source_put(s, values, METRIC_NFS_RETRANSMISSIONS, (double)number);
        return true;
    }
    return false;
}

// "device server:/home mounted on /home with fstype nfs4 …": the folder, empty for other file
// systems.
static struct str nfs_folder(struct str line)
{
    ptrdiff_t on = str_find(line, STR(" mounted on "));
    if (on < 0)
        return STR("");
    struct str rest = str_slice(line, (size_t)on + 12, line.size);
    ptrdiff_t with = str_find(rest, STR(" with fstype nfs"));
    if (with <= 0)
        return STR("");
    // "nfs" or "nfs4", not "nfsd".
    struct str type = str_slice(rest, (size_t)with + 16, rest.size);
    if (type.size && type.data[0] != ' ' && type.data[0] != '4')
        return STR("");
    struct str folder = str_slice(rest, 0, (size_t)with);
    return folder.size < SOURCE_TAG_SIZE
               ? folder
               : str_slice(folder, folder.size - (SOURCE_TAG_SIZE - 1), folder.size);
}

static size_t put_mounts(struct source *s, double *values, struct str text)
{
    struct str line;
    ptrdiff_t instance = -1;
    size_t found = 0;
    while (scan_line(&text, &line)) {
        if (str_starts(line, STR("device "))) {
            struct str folder = nfs_folder(line);
            instance = folder.size ? source_instance(s, folder, STR("")) : -1;
            continue;
        }
        uint64_t numbers[NUMBERS];
        int count = 0;
        if (instance < 0 || !str_eq(str_word(&line), STR("bytes:")))
            continue;
        while (count < NUMBERS && scan_u64(&line, &numbers[count]))
            count++;
        if (count < NUMBERS)
            continue;
        source_put_at(s, values, instance, METRIC_NFS_READ_BYTES, (double)numbers[FROM_SERVER]);
        source_put_at(s, values, instance, METRIC_NFS_WRITTEN_BYTES, (double)numbers[TO_SERVER]);
        found++;
    }
    source_forget_unseen(s);
    return found;
}

static int nfs_sample(struct source *s, double *values)
{
    struct nfs *n = s->state;
    struct str text;
    size_t found = 0;
    if (n->calls.fd >= 0 && procfile_read(&n->calls, s, &text) == 0)
        found += put_calls(s, values, text);
    if (n->mounts.fd >= 0 && procfile_read(&n->mounts, s, &text) == 0)
        found += put_mounts(s, values, text);
    return found || s->reason[0] == 0 ? 0 : -ENODATA;
}

static void nfs_close(struct source *s)
{
    struct nfs *n = s->state;
    procfile_close(&n->calls);
    procfile_close(&n->mounts);
    free(n);
}

static int nfs_open(struct source *s)
{
    struct nfs *n = calloc(1, sizeof *n);
    if (!n)
        return source_fail(s, -ENOMEM, "no memory");
    s->state = n;
    double unused[METRIC_COUNT];
    // Without this file the kernel has no NFS client, and so no mounts.
    int failed = procfile_open(&n->calls, s, "/proc/net/rpc/nfs");
    n->mounts.fd = -1;
    if (failed) {
        free(n);
        return source_fail(s, failed, "no NFS file system was ever mounted");
    }
    procfile_open(&n->mounts, s, "/proc/self/mountstats");
    return nfs_sample(s, unused) == 0 ? 0 : (nfs_close(s), -ENODATA);
}

const struct source_kind source_nfs = {
    .name = {"nfs", 3},
    .rate_s = RATE_S,
    .open = nfs_open,
    .sample = nfs_sample,
    .close = nfs_close,
    .keys = {"folder"},
    .tagged_from = METRIC_NFS_READ_BYTES,
    .tagged_to = METRIC_NFS_WRITTEN_BYTES,
    .apart = true,
};
