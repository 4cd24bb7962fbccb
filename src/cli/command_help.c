#include "cli/colour.h"
#include "cli/commands.h"
#include "cli/help.h"

#include <errno.h>
#include <unistd.h>

int command_help(const struct options *o)
{
    struct buf out = {0};
    bool colours = colour_enabled(STDOUT_FILENO);
    if (options_flag(o, OPT_MAN) && o->argument_count == 0) {
        help_man(&out);
    } else if (options_flag(o, OPT_MARKDOWN)) {
        help_markdown(&out);
    } else if (o->argument_count == 0) {
        help_overview(&out, colours);
    } else {
        enum command_id id = command_find(o->arguments[0]);
        if (id == COMMAND_COUNT) {
            struct error e;
            const char *near = command_nearest(o->arguments[0]);
            error_set(&e, -EINVAL, "unknown command '%.80s'%s%s", o->arguments[0],
                      near ? "; did you mean sonde help " : "; see sonde help", near ? near : "");
            return command_failed(EXIT_USAGE, &e);
        }
        if (options_flag(o, OPT_MAN))
            help_man_command(&out, id);
        else
            help_command(&out, id, colours);
    }
    return command_print(&out);
}
