// data_request.h - the common part of all commands that query data: the target, the range of time,
// and messages about missing nodes and unknown names.
//
// The commands use the client library (client/client.h), as programs do. It sends requests to a
// running job over HTTP, and reads recordings in this process.
#ifndef SONDE_CLI_DATA_REQUEST_H
#define SONDE_CLI_DATA_REQUEST_H

#include "cli/options.h"
#include "client/client.h"
#include "query/query.h"

enum { DATA_REQUEST_EVENTS_MAX = 1000000 }; // spans or annotations in one answer (docs/http.md)

struct data_request {
    const struct options *o;
    struct sonde_client *client;
    struct buf missing; // "n2 (late), n7 (not connected)"
};

// Opens the target. `where` has the arguments that name jobs and recordings. Without any, the
// target is that of --job, or the default one (client/target.h). If no argument names the target,
// its name is printed on stderr.
int data_request_open(const struct options *o, char *const *where, size_t count,
                      struct data_request *out, struct error *e);

// The options for resolving names.
struct target_options data_request_targets(const struct options *o);

// Notes the nodes that are missing from an answer. NULL: none.
void data_request_missing(struct data_request *a, const char *names);

// Closes the target, and prints the missing nodes on stderr. Returns `code`, or EXIT_PARTLY if
// nodes are missing and --strict is given.
int data_request_close(struct data_request *a, int code);

// Reads --start and --end; the defaults are "first" and "last". Returns 0, or -EINVAL with a
// message.
struct data_range {
    const char *start, *end;
    int64_t start_ns, end_ns; // used if the texts are NULL
};
int data_request_range(const struct options *o, struct data_range *out, struct error *e);

// Runs the query, and notes missing nodes. Returns -ENOENT for an unknown metric; the message
// suggests the nearest one.
int data_request_query(struct data_request *a, struct str metric, const struct sonde_query *q,
                       struct sonde_result **out, struct error *e);

// Sets the error for an unknown metric in *e, which suggests the nearest one. Returns -ENOENT.
int data_request_unknown_metric(struct data_request *a, struct str name, struct error *e);

// Like client_list, and notes missing nodes.
int data_request_list(struct data_request *a, const char *path, const char *name, json_t **out,
                      struct error *e);

// Adds the range as parameters of a path; leaves out "first" and "last", which are not valid for
// lists.
void data_request_add_range(struct buf *path, const struct data_range *range);

// Lists the spans of this name (NULL: any), or with `unfinished` only open ones. Returns -E2BIG if
// there are more than one answer can contain.
int data_request_spans(struct data_request *a, const struct data_range *range, const char *name,
                       bool unfinished, json_t **out, struct error *e);

// Converts the tags of a row to labels, sorted by key. Their texts belong to the row. NULL: out of
// memory.
struct store_label *data_request_labels(const json_t *tags, struct arena *arena, size_t *count);

// Explains an empty result: prints a warning for each filter that no series of the metric can pass.
void data_request_explain_filters(struct data_request *a, const struct query *q);

// Return members of the JSON object of a list's entry.
const char *data_request_text(const json_t *object, const char *key); // "" if it is missing
int64_t data_request_number(const json_t *object, const char *key);   // 0 if it is missing

#endif
