// config_paths.h - `sonde config`: the installation that this program belongs to, for
// people, compilers and scripts.
#ifndef SONDE_CLI_CONFIG_PATHS_H
#define SONDE_CLI_CONFIG_PATHS_H

#include "base/str.h"
#include "cli/options.h"

// Adds the values that the options ask for, on one line; without options, a line for each part of
// the installation. Returns 0, or -ENOENT with a message: a part is not installed.
int config_paths(const struct options *o, struct buf *out, struct error *e);

#endif
