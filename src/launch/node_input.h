// node_input.h - parses the launcher's lines, the standard input of `sonde node` (node.h describes
// them), into facts. The caller acts on them.
#ifndef SONDE_LAUNCH_NODE_INPUT_H
#define SONDE_LAUNCH_NODE_INPUT_H

#include "base/error.h"
#include "base/str.h"
#include "launch/hostlist.h"
#include "launch/job.h"
#include "wire/bulk.h"
#include "wire/link.h"
#include "wire/settings.h"

#include <limits.h>

enum {
    NODE_INPUT_VERSION = 2, // bindings/python/sonde/dask/_node.py has it, too
    NODE_INPUT_LINE_MAX = HOSTLIST_BYTES_MAX + 16, // bytes; the longest is "hosts …"
    NODE_INPUT_PARENTS_MAX = WIRE_PARENTS_MAX * (HOST_NAME_MAX + 16),
    NODE_INPUT_ARGUMENTS_MAX = 32, // for the agent
};

struct node_input {
    // Empty until the launcher has sent them.
    char job[JOB_ID_MAX + 1], folder[FOLDER_PATH_MAX], token[256], key[2 * WIRE_KEY_BYTES + 1],
        name[HOST_NAME_MAX + 1], transport[WIRE_TRANSPORT_NAME_MAX], dragon_port[8],
        record[FOLDER_PATH_MAX], mark[80], url[JOB_URL_MAX];
    char parents[NODE_INPUT_PARENTS_MAX];      // "ADDRESS PORT ADDRESS PORT"
    char *command, *hosts, *children;          // owned; NULL until the launcher has sent them
    char *arguments[NODE_INPUT_ARGUMENTS_MAX]; // owned
    size_t argument_count;
    int64_t beat_ms, orphan_ms, stop_ms;
    bool whole; // "go" has come: the setup is complete
    bool versioned;
    struct buf pending; // an incomplete line
};

// Lines that need an action.
enum node_input_news {
    NODE_INPUT_PARENT,
    NODE_INPUT_CHILDREN,
    NODE_INPUT_HOSTS,
    NODE_INPUT_FINISH,
    NODE_INPUT_DROP,
    NODE_INPUT_COLLECTOR,
    NODE_INPUT_URL,
    NODE_INPUT_NAME_IN,
    NODE_INPUT_END,
};

// `value` is the text after the verb; *t still has the former value.
typedef void node_input_news_fn(void *user, enum node_input_news news, struct str value);

// Sets the default times.
void node_input_init(struct node_input *t);
void node_input_free(struct node_input *t);

// Takes the next bytes, which may end anywhere in a line. Returns 0, or with a message -EPROTO:
// another version; -EMSGSIZE: a line or value is too long (it is not cut); -E2BIG: too many
// arguments; -ENOMEM. After a failure the facts are invalid. Unknown lines, lines for other nodes,
// and times that are not numbers, are ignored.
int node_input_take(struct node_input *t, struct str piece, node_input_news_fn *news, void *user,
                    struct error *e);

#endif
