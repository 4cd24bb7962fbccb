// colour.h - decides whether output has colours: only on terminals, unless NO_COLOR is set or TERM
// is "dumb".
#ifndef SONDE_CLI_COLOUR_H
#define SONDE_CLI_COLOUR_H

#include <stdbool.h>

#define COLOUR_BOLD "\033[1m"
#define COLOUR_GREEN "\033[32m"
#define COLOUR_YELLOW "\033[33m"
#define COLOUR_RED "\033[31m"
#define COLOUR_OFF "\033[0m"

// True if output to fd may be coloured.
bool colour_enabled(int fd);

#endif
