// statistics_answer.h - the common part of `sonde stats` and `sonde peaks`: their arguments, and
// the rows as a table, CSV or JSON.
#ifndef SONDE_CLI_STATISTICS_ANSWER_H
#define SONDE_CLI_STATISTICS_ANSWER_H

#include "cli/options.h"
#include "client/statistics.h"

// Executes the whole command line. Returns the exit code.
int statistics_answer(const struct options *o, enum statistics_kind kind);

#endif
