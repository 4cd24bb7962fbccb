// serve.h - what `sonde aggregator` and `sonde replay` have in common.
#ifndef SONDE_CLI_SERVE_H
#define SONDE_CLI_SERVE_H

#include "aggregator/aggregator.h"
#include "aggregator/tokens.h"
#include "cli/options.h"

// The control token of --token-file (made when it is not there), or a new one.
int serve_token(const struct options *o, char out[TOKEN_TEXT_MAX], struct error *e);

// Built-in metrics answer to other names, too: for aggregator_options.resolve_alias.
struct str serve_other_name(struct str name);

// What the options say of the server's limits.
struct aggregator_limits serve_limits(const struct options *o);

// Without a control socket: says on standard error where it listens, then serves until SIGINT or
// SIGTERM. The address has the view token behind it where standard error is a terminal, or where
// nobody could find it elsewhere (`from_file` false).
int serve_by_hand(const struct aggregator_options *options, bool from_file, struct error *e);

#endif
