// expression.h - parses an expression of `sonde query` to a query of the client, to which callers
// can add filters and another downsampling.
#ifndef SONDE_CLIENT_EXPRESSION_H
#define SONDE_CLIENT_EXPRESSION_H

#include "client/client.h"
#include "query/query.h"

struct expression {
    struct query parsed;
    struct sonde_query query; // without times
    // the members of the query cannot express it (a rate with a maximum of the counter), so only
    // `m` is set
    bool as_text;
};

// Parses an expression. A name without an aggregator, with or without tags, selects every series by
// itself. All texts are in `arena`. Returns 0, -EINVAL with the reason, or -ENOMEM.
int expression_read(const char *text, struct arena *arena, struct expression *out, struct error *e);

#endif
