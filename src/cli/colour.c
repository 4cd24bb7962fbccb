#include "cli/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour_enabled(int fd)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(off && *off) && !(terminal && strcmp(terminal, "dumb") == 0);
}
