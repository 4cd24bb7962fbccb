#include "cli/commands.h"
#include "cli/help.h"

#include <errno.h>

int command_completion(const struct options *o)
{
    struct buf out = {0};
    if (!help_completion(&out, o->arguments[0])) {
        struct error e;
        error_set(&e, -EINVAL, "no completion for '%.80s'; there is bash, zsh and fish", o->arguments[0]);
        return command_failed(EXIT_USAGE, &e);
    }
    return command_print(&out);
}
