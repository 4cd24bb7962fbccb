// `sonde config`: the settings, and where they come from.
#include "cli/commands.h"
#include "cli/config_show.h"

#include <errno.h>

int command_config(const struct options *o)
{
    struct buf out = {0};
    struct error e;
    if (!options_flag(o, OPT_SETTINGS)) {
        error_set(&e, -EINVAL, "something is missing: sonde config --show");
        return command_failed(EXIT_USAGE, &e);
    }
    config_show(o, &out);
    return command_print(&out);
}
