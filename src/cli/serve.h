// serve.h - what `sonde aggregator` and `sonde replay` have in common.
#ifndef SONDE_CLI_SERVE_H
#define SONDE_CLI_SERVE_H

#include "aggregator/aggregator.h"
#include "cli/options.h"
#include "http/tokens.h"

// The control token of --token-file (made if there is no file), or a new one.
int serve_token(const struct options *o, char out[TOKEN_TEXT_MAX], struct error *e);

// Built-in metrics answer to other names, too: for aggregator_options.resolve_alias.
struct str serve_other_name(struct str name);

// What the options say of the server's limits.
struct service_limits serve_limits(const struct options *o);

// Serves without a control socket: prints its address on standard error, then serves until SIGINT
// or SIGTERM. It adds the view token to the address if standard error is a terminal, or if there is
// no other way to learn it (`from_file` false).
int serve_by_hand(const struct aggregator_options *options, bool from_file, struct error *e);

// Called when the server listens: its address, and the URL of the page with the view token.
typedef void serve_ready_fn(void *user, const char *address, const char *url);

// The same, with `ready` instead of the line on standard error.
int serve_until_signal(const struct aggregator_options *options, serve_ready_fn *ready, void *user,
                       struct error *e);

// Serves the recordings that the arguments name, as `sonde replay` does; `ready` may be NULL, for
// the line on standard error. Returns the exit code.
int serve_recordings(const struct options *o, serve_ready_fn *ready, void *user);

#endif
