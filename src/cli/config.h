// config.h - the YAML configuration file.
//
//   telemetry_level: 3
//   collector_rate: 0.1        # the Dragon Telemetry Service's name for `rate`
//
// A flat mapping of the keys in options.def, sonde's or Dragon's. A key that nobody knows is an
// error with its line and the nearest name; so is a key that is given twice, under either name.
#ifndef SONDE_CLI_CONFIG_H
#define SONDE_CLI_CONFIG_H

#include "cli/options.h"

enum { CONFIG_SIZE_MAX = 256 * 1024 }; // bytes of a file

// Fills in the values that neither flags nor the environment gave. Keys of other commands are
// checked, too, and left alone. 0, -EINVAL or what opening gave; the words name file and line.
int config_read(const char *path, struct options *o, struct error *e);

#endif
