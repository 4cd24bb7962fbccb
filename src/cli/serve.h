// serve.h - the common part of `sonde aggregator` and `sonde replay`.
#ifndef SONDE_CLI_SERVE_H
#define SONDE_CLI_SERVE_H

#include "aggregator/aggregator.h"
#include "cli/options.h"
#include "http/tokens.h"

// Reads the control token from --token-file (which it makes if it is missing), or makes a new one.
int serve_token(const struct options *o, char out[TOKEN_TEXT_MAX], struct error *e);

// Resolves aliases of built-in metrics, for aggregator_options.resolve_alias.
struct str serve_other_name(struct str name);

// Reads the server's limits from the options.
struct service_limits serve_limits(const struct options *o);

// Serves without a control socket: prints the server's address on standard error, then serves until
// SIGINT or SIGTERM. The address contains the view token if standard error is a terminal, or if the
// user has no other source of the token (`from_file` is false).
int serve_by_hand(const struct aggregator_options *options, bool from_file, struct error *e);

// Called when the server listens, with its address and the URL of the page, which contains the view
// token.
typedef void serve_ready_fn(void *user, const char *address, const char *url);

// Like serve_by_hand, but calls `ready` instead of printing the address.
int serve_until_signal(const struct aggregator_options *options, serve_ready_fn *ready, void *user,
                       struct error *e);

// Serves the recordings that the arguments name, as `sonde replay` does; if `ready` is NULL, prints
// the address. Returns the exit code.
int serve_recordings(const struct options *o, serve_ready_fn *ready, void *user);

#endif
