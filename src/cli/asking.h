// asking.h - the common part of all commands that query: the target, the range of time, and
// messages about missing nodes and unknown names.
//
// They use the client library (client/client.h), as programs do: a running job over HTTP,
// recordings in this process.
#ifndef SONDE_CLI_ASKING_H
#define SONDE_CLI_ASKING_H

#include "cli/options.h"
#include "client/client.h"
#include "query/query.h"

enum { ASKING_EVENTS_MAX = 1000000 }; // spans or annotations in one answer (docs/http.md)

struct asking {
    const struct options *o;
    struct sonde_client *client;
    struct buf missing; // "n2 (late), n7 (not connected)"
};

// `where` has the arguments that name jobs and recordings; without any, --job or the default target
// counts (client/target.h). If no argument names the target, it is printed on stderr.
int asking_open(const struct options *o, char *const *where, size_t count, struct asking *out,
                struct error *e);

// The options for resolving names.
struct target_options asking_targets(const struct options *o);

// Notes the nodes that an answer lacks. NULL: none.
void asking_missing(struct asking *a, const char *names);

// Closes, and prints the missing nodes on stderr. Returns `code`, or EXIT_PARTLY if nodes are
// missing and --strict is given.
int asking_close(struct asking *a, int code);

// Reads --start and --end; the defaults are "first" and "last". -EINVAL with a message.
struct asking_range {
    const char *start, *end;
    int64_t start_ns, end_ns; // instead of the texts if those are NULL
};
int asking_range(const struct options *o, struct asking_range *out, struct error *e);

// Runs the query, and notes missing nodes. -ENOENT: unknown metric; the message suggests the
// nearest one.
int asking_query(struct asking *a, struct str metric, const struct sonde_query *q,
                 struct sonde_result **out, struct error *e);

// Fills *e with the error for an unknown metric, which suggests the nearest one. Returns -ENOENT.
int asking_unknown_metric(struct asking *a, struct str name, struct error *e);

// Like client_list, and notes missing nodes.
int asking_list(struct asking *a, const char *path, const char *name, json_t **out,
                struct error *e);

// Adds the range as parameters of a path; leaves out "first" and "last", which are not valid for
// lists.
void asking_add_range(struct buf *path, const struct asking_range *range);

// Lists the spans of that name (NULL: any), or with `unfinished` only open ones. -E2BIG: more than
// one answer can contain.
int asking_spans(struct asking *a, const struct asking_range *range, const char *name,
                 bool unfinished, json_t **out, struct error *e);

// The tags of a row as labels, sorted by key; their texts belong to the row. NULL: out of memory.
struct store_label *asking_labels(const json_t *tags, struct arena *arena, size_t *count);

// Explains an empty result: prints a warning for each filter that no series of the metric can pass.
void asking_explain_filters(struct asking *a, const struct query *q);

// Members of the JSON object of a list's entry.
const char *asking_text(const json_t *object, const char *key); // "" if it is missing
int64_t asking_number(const json_t *object, const char *key);   // 0 if it is missing

#endif
