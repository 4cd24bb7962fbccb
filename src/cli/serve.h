// serve.h - what `sonde aggregator` and `sonde replay` have in common.
#ifndef SONDE_CLI_SERVE_H
#define SONDE_CLI_SERVE_H

#include "aggregator/aggregator.h"
#include "cli/options.h"

// The first line of the file, or a new token where `path` is NULL.
int serve_token(const char *path, struct buf *out, struct error *e);

// Built-in metrics answer to other names, too: for aggregator_options.resolve_alias.
struct str serve_other_name(struct str name);

// What the options say of the server's limits.
struct aggregator_limits serve_limits(const struct options *o);

// Without a control socket: says on standard error where it listens, then serves until SIGINT or SIGTERM.
int serve_by_hand(const struct aggregator_options *options, struct error *e);

#endif
