// host_filter.h - which hosts a question is about: what its filters and tags on the label `host`
// let through.
//
// A question asks for one thing or several (a stream's selections). A node need not be asked when
// no value of `host` that its store holds (host_set.h) passes all that one of them says of `host`,
// as then none of its series does. That is decided by the filters themselves; a question that says
// nothing of `host`, or that cannot be read, is about everybody, and so is a pattern of more than
// ASK_HOST_FILTER_PATTERN_MAX bytes, as many values are tried with it in the loop's thread.
#ifndef SONDE_ASK_HOST_FILTER_H
#define SONDE_ASK_HOST_FILTER_H

#include "wire/host_set.h"

#include "base/arena.h"
#include "query/filter.h"

enum {
    ASK_HOST_FILTER_WANTS_MAX = 16,     // things that a question asks for
    ASK_HOST_FILTER_PATTERN_MAX = 1024, // bytes
    ASK_HOST_FILTER_MEMORY = 1 << 20,
};

struct ask_want {
    struct query_matcher *matchers; // of `host`
    size_t matcher_count;
    const struct store_label *tags; // all, of which those of `host` count
    size_t tag_count;
};

struct wire_host_filter {
    bool everybody;
    struct arena arena;
    struct ask_want wants[ASK_HOST_FILTER_WANTS_MAX];
    size_t count;
};

// For the questions' rows (question.h): one more thing that is asked for. Texts must live as long
// as *a.
void ask_host_filter_add_filters(struct wire_host_filter *a, const struct query_filter *filters,
                                 size_t count);
void ask_host_filter_add_tags(struct wire_host_filter *a, const struct store_label *tags,
                              size_t count);

// `request` must outlive it. Always followed by ask_host_filter_free.
void ask_host_filter_read(struct wire_host_filter *a, unsigned question, struct str request);
void ask_host_filter_free(struct wire_host_filter *a);

// Whether the request goes to the node of that name with these hosts. It goes to a node that has
// not reported its hosts.
bool ask_host_filter_concerns(const struct wire_host_filter *a, struct str node,
                              const struct wire_host_set *held);

// Whether filters say anything of `host`.
bool ask_host_filter_any_host(const struct query_filter *filters, size_t count);

#endif
