// asking.h - what the commands that ask have in common: whom they ask, over which times, and what
// they say of nodes that are missing and of names that do not exist.
//
// They ask through the client library (client/client.h), as programs do: a running job over HTTP,
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

// `where`: the arguments that name jobs and recordings; none: --job, or the usual ones
// (client/target.h). Says on stderr whom it asks if no argument does.
int asking_open(const struct options *o, char *const *where, size_t count, struct asking *out,
                struct error *e);

// What names are resolved by.
struct target_options asking_targets(const struct options *o);

// Notes who was missing in an answer. NULL: nobody was.
void asking_missing(struct asking *a, const char *names);

// How many those are. NULL: none.
size_t asking_missing_count(const char *names);

// Names on stderr who was missing. Returns `code`, or EXIT_PARTLY if --strict says so. Closes.
int asking_close(struct asking *a, int code);

// --start and --end; without them "first" and "last". -EINVAL with words.
struct asking_range {
    const char *start, *end;
    int64_t start_ns, end_ns; // in place of the texts where those are NULL
};
int asking_range(const struct options *o, struct asking_range *out, struct error *e);

// Asks, and notes who was missing. -ENOENT: there is no such metric, with the nearest one in words.
int asking_query(struct asking *a, struct str metric, const struct sonde_query *q,
                 struct sonde_result **out, struct error *e);

// Puts into *e that there is no such metric, with the nearest one. -ENOENT.
int asking_unknown_metric(struct asking *a, struct str name, struct error *e);

// As client_list, and notes who was missing.
int asking_list(struct asking *a, const char *path, const char *name, json_t **out,
                struct error *e);

// The range as parameters of a path; "first" and "last" are no bounds of lists.
void asking_add_range(struct buf *path, const struct asking_range *range);

// Spans of that name (NULL: any), or (`unfinished`) only those without an end. -E2BIG: more than
// one answer takes.
int asking_spans(struct asking *a, const struct asking_range *range, const char *name,
                 bool unfinished, json_t **out, struct error *e);

// The tags of a row as labels, sorted by key, whose texts are the row's. NULL: no memory.
struct store_label *asking_labels(const json_t *tags, struct arena *arena, size_t *count);

// Why a query has found nothing: a warning for each filter that no series of the metric can pass.
void asking_explain_filters(struct asking *a, const struct query *q);

// Members of the JSON that a list is made of.
const char *asking_text(const json_t *object, const char *key); // "" where there is none
int64_t asking_number(const json_t *object, const char *key);   // 0 where there is none

#endif
