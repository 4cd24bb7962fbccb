// config.h - the YAML configuration files.
//
//   telemetry_level: 3
//   collector_rate: 0.1        # the Dragon Telemetry Service's name for `rate`
//
// A file is a flat mapping of the keys in options.def, sonde's or Dragon's. It is an error if a key
// appears twice, under either name. An unknown key is ignored, because the file may be for another
// version.
//
// There are three files, listed by priority. Each sets only options that no source of a higher
// priority has set:
//
//   FROM_FILE         named by --config or a variable. A mistake in it is an error: the user has
//                     named this file explicitly.
//   FROM_USER_FILE    $XDG_CONFIG_HOME/sonde.yaml, else ~/.config/sonde.yaml
//   FROM_SYSTEM_FILE  /etc/sonde.yaml; SONDE_SYSTEM_CONFIG names another one; none if it is empty
//
// The last two affect every command, so a mistake in them does not stop a command. A warning names
// file and line, and the command ignores the line, or the whole file if it is not YAML.
#ifndef SONDE_CLI_CONFIG_H
#define SONDE_CLI_CONFIG_H

#include "cli/options.h"

#define CONFIG_SYSTEM_FILE "/etc/sonde.yaml"

enum { CONFIG_SIZE_MAX = 256 * 1024 }; // bytes of a file

// Sets, from the three files, the values that neither flags nor the environment have set. Processes
// that a launcher starts (--control-fd) read no files, because their arguments contain everything.
// Keys of other commands are checked, but not used. Returns 0, -EINVAL, or the error of opening the
// named file; the message has the file and the line.
int config_read_all(struct options *o, struct error *e);

// Finds the path of this source's file, whether it exists or not. Returns false if the source has
// none.
bool config_path(const struct options *o, enum option_source source, char out[PATH_MAX]);

#endif
