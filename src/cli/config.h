// config.h - the YAML configuration file.
//
//   telemetry_level: 3
//   collector_rate: 0.1        # the Dragon Telemetry Service's name for `rate`
//
// A flat mapping of the keys in options.def, sonde's or Dragon's. An unknown key is an error, which
// names its line and the nearest key; so is a key that appears twice, under either name.
#ifndef SONDE_CLI_CONFIG_H
#define SONDE_CLI_CONFIG_H

#include "cli/options.h"

enum { CONFIG_SIZE_MAX = 256 * 1024 }; // bytes of a file

// Fills in the values that neither flags nor the environment set. Checks keys of other commands,
// too, but does not use them. Returns 0, -EINVAL or the error of opening the file; the message
// names file and line.
int config_read(const char *path, struct options *o, struct error *e);

#endif
