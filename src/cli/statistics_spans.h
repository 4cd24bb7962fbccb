// statistics_spans.h - `sonde stats --spans`: the table of spans that a report has, too.
#ifndef SONDE_CLI_STATISTICS_SPANS_H
#define SONDE_CLI_STATISTICS_SPANS_H

#include "cli/options.h"

// Answers the whole command line. Returns the exit code.
int statistics_spans(const struct options *o);

#endif
