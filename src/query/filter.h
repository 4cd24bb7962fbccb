// filter.h - tag filters: their spellings, their checks, and the test of one value.
#ifndef SONDE_QUERY_FILTER_H
#define SONDE_QUERY_FILTER_H

#include "base/map.h"
#include "query/query.h"

#include <regex.h>

enum {
    QUERY_FILTERS_MAX = 64,            // a query
    QUERY_FILTER_TEXT_MAX = 64 * 1024, // bytes; lists of hosts are long
    // bytes of a list from which on it is looked up rather than looked through
    QUERY_FILTER_LONG = 256,
    QUERY_REGEXP_MAX = 512,         // bytes of a pattern
    QUERY_REGEXP_BRANCHES_MAX = 10, // repeats and alternatives inside what is itself repeated
    // atoms of a pattern, {n} and + unrolled: the C library does that
    QUERY_REGEXP_NODES_MAX = 1000,
};

// "literal_or" …; QUERY_FILTER_COUNT when unknown.
enum query_filter_kind query_filter_of(struct str name);
struct str query_filter_name(enum query_filter_kind kind);

// Checks a filter without data: an asterisk in a wildcard, no text in a not_key, lengths. -EINVAL
// with the reason.
int query_filter_check(const struct query_filter *f, struct error *e);

// The old style `key=text`: "*", "web*", "a|b", "wildcard(web*)". Views of key and text.
int query_filter_old_style(struct str key, struct str text, bool group_by, struct query_filter *out,
                           struct error *e);

// Whether a series that lacks the key passes.
static inline bool query_filter_passes_without_key(enum query_filter_kind kind)
{
    return kind == QUERY_NOT_LITERAL_OR || kind == QUERY_NOT_ILITERAL_OR || kind == QUERY_NOT_KEY ||
           kind == QUERY_EQUAL_OR_ABSENT;
}

// A filter ready to test values. The texts of *f must outlive it. -EINVAL with the reason, -ENOMEM.
struct query_matcher {
    const struct query_filter *filter;
    regex_t regex;
    bool has_regex;
    struct map list; // of a long one: what it names
    char *folded;    // in lower case, where case does not matter
    bool has_list;
};
int query_matcher_init(struct query_matcher *m, const struct query_filter *f, struct error *e);
void query_matcher_fini(struct query_matcher *m);
bool query_matcher_test(const struct query_matcher *m, struct str value);

#endif
