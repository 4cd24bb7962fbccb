// statistics_spans.h - `sonde stats --spans`: prints the table of spans that reports have, too.
#ifndef SONDE_CLI_STATISTICS_SPANS_H
#define SONDE_CLI_STATISTICS_SPANS_H

#include "cli/options.h"

// Executes the whole command line. Returns the exit code.
int statistics_spans(const struct options *o);

#endif
