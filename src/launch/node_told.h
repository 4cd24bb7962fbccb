// node_told.h - what `sonde node` is told: the bytes of its standard input, taken apart into facts
// (node.h has the lines). Nothing is done here.
#ifndef SONDE_LAUNCH_NODE_TOLD_H
#define SONDE_LAUNCH_NODE_TOLD_H

#include "base/error.h"
#include "base/str.h"
#include "launch/hostlist.h"
#include "launch/job.h"
#include "wire/bulk.h"
#include "wire/link.h"
#include "wire/settings.h"

#include <limits.h>

enum {
    TOLD_VERSION = 1,
    TOLD_LINE_MAX = HOSTLIST_BYTES_MAX + 16, // bytes; the longest is "hosts …"
    TOLD_PARENTS_MAX = WIRE_PARENTS_MAX * (HOST_NAME_MAX + 16),
    TOLD_ARGUMENTS_MAX = 32, // for the agent
};

struct told {
    // Empty until they are told.
    char job[JOB_ID_MAX + 1], folder[FOLDER_PATH_MAX], token[256], key[2 * WIRE_KEY_BYTES + 1],
        name[HOST_NAME_MAX + 1], transport[WIRE_WAY_MAX], dragon_port[8], record[FOLDER_PATH_MAX],
        mark[80], url[JOB_URL_MAX];
    char parents[TOLD_PARENTS_MAX];      // "ADDRESS PORT ADDRESS PORT"
    char *command, *hosts, *children;    // owned; NULL until they are told
    char *arguments[TOLD_ARGUMENTS_MAX]; // owned
    size_t argument_count;
    int64_t beat_ms, orphan_ms, stop_ms;
    bool whole; // "go": that was all
    bool versioned;
    struct buf pending; // up to the end of its line
};

// Lines on which somebody has to act.
enum told_news {
    TOLD_PARENT,
    TOLD_CHILDREN,
    TOLD_HOSTS,
    TOLD_FINISH,
    TOLD_DROP,
    TOLD_COLLECTOR,
    TOLD_URL,
};

// `value` is what stands behind the verb; what was told of it before is still in its place.
typedef void told_news_fn(void *user, enum told_news news, struct str value);

// With the times that hold until others are told.
void told_init(struct told *t);
void told_free(struct told *t);

// Takes what has come, wherever lines are cut. 0, or with words -EPROTO: not this version;
// -EMSGSIZE: a line or a value that has no room (it is not cut); -E2BIG: more arguments; -ENOMEM.
// Then nothing more of it holds. Lines that it does not know, and times that are none, are left
// alone.
int told_take(struct told *t, struct str piece, told_news_fn *news, void *user, struct error *e);

#endif
