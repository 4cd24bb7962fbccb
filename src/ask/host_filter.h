// host_filter.h - finds the hosts that a question is about from its filters and tags on the label
// `host`.
//
// A question has one selection, or several (a question of a stream). A node can answer a selection
// only if one of the hosts in its store (host_set.h) passes all filters of the selection on `host`;
// otherwise none of its series does. The hub does not ask nodes that can answer no selection. Some
// questions are about all hosts: a question without filters on `host`, a question that cannot be
// decoded, and a question with a pattern of more than ASK_HOST_FILTER_PATTERN_MAX bytes, because
// the loop's thread tries many values with each pattern.
#ifndef SONDE_ASK_HOST_FILTER_H
#define SONDE_ASK_HOST_FILTER_H

#include "wire/host_set.h"

#include "base/arena.h"
#include "query/filter.h"

enum {
    ASK_HOST_FILTER_SELECTIONS_MAX = 16, // selections of a question
    ASK_HOST_FILTER_PATTERN_MAX = 1024,  // bytes
    ASK_HOST_FILTER_MEMORY = 1 << 20,
};

struct ask_host_selection {
    struct query_matcher *matchers; // filters on `host`
    size_t matcher_count;
    const struct store_label *tags; // all tags; only those with the key `host` count
    size_t tag_count;
};

struct wire_host_filter {
    bool everybody;
    struct arena arena;
    struct ask_host_selection selections[ASK_HOST_FILTER_SELECTIONS_MAX];
    size_t count;
};

// Adds a selection. The rows of questions (question.h) call it. Texts must live as long as *a.
void ask_host_filter_add_filters(struct wire_host_filter *a, const struct query_filter *filters,
                                 size_t count);
void ask_host_filter_add_tags(struct wire_host_filter *a, const struct store_label *tags,
                              size_t count);

// Reads the filters of a request, which must outlive the result. Call ask_host_filter_free
// afterwards, also after a failure.
void ask_host_filter_read(struct wire_host_filter *a, unsigned question, struct str request);
void ask_host_filter_free(struct wire_host_filter *a);

// True if the request goes to the node of this name with these hosts. It always goes to a node that
// has not reported its hosts.
bool ask_host_filter_concerns(const struct wire_host_filter *a, struct str node,
                              const struct wire_host_set *held);

// True if any filter is on `host`.
bool ask_host_filter_any_host(const struct query_filter *filters, size_t count);

#endif
