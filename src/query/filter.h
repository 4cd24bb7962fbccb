// filter.h - tag filters: their spellings, their checks, and the test of one value.
#ifndef SONDE_QUERY_FILTER_H
#define SONDE_QUERY_FILTER_H

#include "base/map.h"
#include "query/query.h"

#include <regex.h>

enum {
    QUERY_FILTERS_MAX = 64,            // of one query
    QUERY_FILTER_TEXT_MAX = 64 * 1024, // bytes; lists of hosts are long
    // bytes; longer lists are looked up in a map instead of searched
    QUERY_FILTER_LONG = 256,
    QUERY_REGEXP_MAX = 512,         // bytes of a pattern
    QUERY_REGEXP_BRANCHES_MAX = 10, // repeats and alternatives inside a repeated group
    // atoms of a pattern after unrolling {n} and +, as the C library does
    QUERY_REGEXP_NODES_MAX = 1000,
};

// "literal_or" …; QUERY_FILTER_COUNT for an unknown name.
enum query_filter_kind query_filter_of(struct str name);
struct str query_filter_name(enum query_filter_kind kind);

// Checks a filter without data: an asterisk in a wildcard, no text in a not_key, lengths. Returns
// -EINVAL with the reason.
int query_filter_check(const struct query_filter *f, struct error *e);

// The old style `key=text`: "*", "web*", "a|b", "wildcard(web*)". The result points into key and
// text.
int query_filter_old_style(struct str key, struct str text, bool group_by, struct query_filter *out,
                           struct error *e);

// Whether a series without the key passes.
static inline bool query_filter_passes_without_key(enum query_filter_kind kind)
{
    return kind == QUERY_NOT_LITERAL_OR || kind == QUERY_NOT_ILITERAL_OR || kind == QUERY_NOT_KEY ||
           kind == QUERY_EQUAL_OR_ABSENT;
}

// A filter ready to test values. The texts of *f must outlive it. Setting it up returns -EINVAL
// with the reason, or -ENOMEM.
struct query_matcher {
    const struct query_filter *filter;
    regex_t regex;
    bool has_regex;
    struct map list; // the names of a long list
    char *folded;    // in lower case, for filters that ignore case
    bool has_list;
};
int query_matcher_init(struct query_matcher *m, const struct query_filter *f, struct error *e);
void query_matcher_fini(struct query_matcher *m);
bool query_matcher_test(const struct query_matcher *m, struct str value);

#endif
