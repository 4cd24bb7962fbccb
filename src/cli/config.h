// config.h - the YAML configuration files.
//
//   telemetry_level: 3
//   collector_rate: 0.1        # the Dragon Telemetry Service's name for `rate`
//
// A flat mapping of the keys in options.def, sonde's or Dragon's. A key that appears twice, under
// either name, is an error. An unknown key is ignored: the file may be for another version.
//
// Three files, the strongest first. Each sets only what no stronger source has set:
//
//   FROM_FILE         named by --config or a variable. A mistake in it is an error: the user has
//                     just named it.
//   FROM_USER_FILE    $XDG_CONFIG_HOME/sonde.yaml, else ~/.config/sonde.yaml
//   FROM_SYSTEM_FILE  /etc/sonde.yaml; SONDE_SYSTEM_CONFIG names another one; none if it is empty
//
// The last two affect every command, so a mistake in them stops none: a warning names file and
// line, and the command ignores the line, or the whole file if it is not YAML.
#ifndef SONDE_CLI_CONFIG_H
#define SONDE_CLI_CONFIG_H

#include "cli/options.h"

#define CONFIG_SYSTEM_FILE "/etc/sonde.yaml"

enum { CONFIG_SIZE_MAX = 256 * 1024 }; // bytes of a file

// Fills in the values that neither flags nor the environment set, from the three files. Processes
// that a launcher starts (--control-fd) read none: their arguments contain everything. Checks keys
// of other commands, too, but does not use them. Returns 0, -EINVAL or the error of opening the
// named file; the message names file and line.
int config_read_all(struct options *o, struct error *e);

// The path of the file of this source, whether it exists or not; false if it has none.
bool config_path(const struct options *o, enum option_source source, char out[PATH_MAX]);

#endif
