// query_lists.h - what `sonde query` answers beside points: series, spans, annotations, tags.
#ifndef SONDE_CLI_QUERY_LISTS_H
#define SONDE_CLI_QUERY_LISTS_H

#include "cli/asking.h"

// How many of --list, --spans, --annotations and --tags are given.
int query_lists_wanted(const struct options *o);

// Answers the one that is, as a table, CSV or JSON. Returns the exit code.
int query_lists(struct asking *a, const struct asking_range *range);

#endif
