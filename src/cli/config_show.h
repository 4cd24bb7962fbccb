// config_show.h - `sonde config --show`: the settings, and where each comes from.
#ifndef SONDE_CLI_CONFIG_SHOW_H
#define SONDE_CLI_CONFIG_SHOW_H

#include "cli/options.h"

// Adds a line for each configuration file, the strongest first, and a line for each setting.
void config_show(const struct options *o, struct buf *out);

#endif
