#include "base/log.h"
#include "cli/commands.h"
#include "launch/node.h"

int command_node(const struct options *o)
{
    (void)o; // its input is standard input
    struct error e;
    log_setup(LOG_WARNING, "sonde node");
    // The launcher has received the error.
    return node_run(&e) == 0 ? EXIT_OK : EXIT_FAILED;
}
