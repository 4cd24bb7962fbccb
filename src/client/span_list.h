// span_list.h - the recorded spans of one name, for statistics of the points within them.
#ifndef SONDE_CLIENT_SPAN_LIST_H
#define SONDE_CLIENT_SPAN_LIST_H

#include "client/client.h"

struct listed_span {
    int64_t start_ns, end_ns; // end_ns is exclusive; INT64_MAX: the span is open
    struct sonde_tag *tags;   // without the node
    size_t tag_count;
};

struct span_list {
    struct listed_span *spans;
    size_t count;
};

// Lists the spans `name` that begin in [start_ns, end_ns]; start_ns 0: all that begin by end_ns.
// *out is in `arena`. *missing gets the missing nodes, which the caller frees.
int span_list_read(struct sonde_client *c, const char *name, int64_t start_ns, int64_t end_ns,
                   struct arena *arena, struct span_list *out, char **missing, struct error *e);

// Joins the tags of a series and of the span (NULL: none), sorted, with copied texts. NULL: out of
// memory.
struct sonde_tag *span_join_tags(struct arena *arena, const struct sonde_series *s,
                                 const struct listed_span *span, size_t *count);

#endif
