#include "cli/commands.h"

int command_version(const struct options *o)
{
    (void)o;
    struct buf out = {0};
    buf_printf(&out, "sonde " SONDE_VERSION "\n");
    return command_print(&out);
}
