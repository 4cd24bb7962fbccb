// query_lists.h - the lists that `sonde query` prints instead of points: series, spans,
// annotations, tags.
#ifndef SONDE_CLI_QUERY_LISTS_H
#define SONDE_CLI_QUERY_LISTS_H

#include "cli/data_request.h"

// Returns how many of --list, --spans, --annotations and --tags are given.
int query_lists_given(const struct options *o);

// Prints the selected list as a table, CSV or JSON. Returns the exit code.
int query_lists(struct data_request *a, const struct data_range *range);

#endif
