#include "base/log.h"
#include "cli/commands.h"
#include "launch/node.h"

int command_node(const struct options *o)
{
    (void)o; // all that it has to know comes on its standard input
    struct error e;
    log_setup(LOG_WARNING, "sonde node");
    // What went wrong has been told to the launcher.
    return node_run(&e) == 0 ? EXIT_OK : EXIT_FAILED;
}
