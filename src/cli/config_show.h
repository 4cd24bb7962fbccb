// config_show.h - `sonde config --show`: prints the settings, and the source of each.
#ifndef SONDE_CLI_CONFIG_SHOW_H
#define SONDE_CLI_CONFIG_SHOW_H

#include "cli/options.h"

// Adds a line for each configuration file, by priority, and a line for each setting.
void config_show(const struct options *o, struct buf *out);

#endif
