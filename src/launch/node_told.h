// node_told.h - parses the launcher's lines, the standard input of `sonde node` (node.h describes
// them), into facts. It does not act on them.
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
    // Empty until their lines have come.
    char job[JOB_ID_MAX + 1], folder[FOLDER_PATH_MAX], token[256], key[2 * WIRE_KEY_BYTES + 1],
        name[HOST_NAME_MAX + 1], transport[WIRE_WAY_MAX], dragon_port[8], record[FOLDER_PATH_MAX],
        mark[80], url[JOB_URL_MAX];
    char parents[TOLD_PARENTS_MAX];      // "ADDRESS PORT ADDRESS PORT"
    char *command, *hosts, *children;    // owned; NULL until their lines have come
    char *arguments[TOLD_ARGUMENTS_MAX]; // owned
    size_t argument_count;
    int64_t beat_ms, orphan_ms, stop_ms;
    bool whole; // "go" has come: the setup is complete
    bool versioned;
    struct buf pending; // an incomplete line
};

// Lines that need an action.
enum told_news {
    TOLD_PARENT,
    TOLD_CHILDREN,
    TOLD_HOSTS,
    TOLD_FINISH,
    TOLD_DROP,
    TOLD_COLLECTOR,
    TOLD_URL,
};

// `value` is the text behind the verb; the former value is still in its place.
typedef void told_news_fn(void *user, enum told_news news, struct str value);

// Sets the default times.
void told_init(struct told *t);
void told_free(struct told *t);

// Takes the next bytes, which may end anywhere in a line. 0, or with a message -EPROTO: another
// version; -EMSGSIZE: a line or value is too long (it is not cut); -E2BIG: too many arguments;
// -ENOMEM. After a failure the facts are invalid. It ignores unknown lines, and times that are not
// numbers.
int told_take(struct told *t, struct str piece, told_news_fn *news, void *user, struct error *e);

#endif
