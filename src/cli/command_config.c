// `sonde config`: where sonde is installed.
#include "cli/commands.h"
#include "cli/config_paths.h"

int command_config(const struct options *o)
{
    struct buf out = {0};
    struct error e;
    if (config_paths(o, &out, &e) == 0)
        return command_print(&out);
    buf_free(&out);
    return command_failed(EXIT_FAILED, &e);
}
