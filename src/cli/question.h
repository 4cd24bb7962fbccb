// question.h - what the commands that ask have in common: names, times, and what is said of damage.
#ifndef SONDE_CLI_QUESTION_H
#define SONDE_CLI_QUESTION_H

#include "cli/recordings.h"
#include "query/query.h"

// Built-in metrics answer to other names, too.
void question_resolve(const struct recordings *r, struct query *q);

// Says in *e that there is no such metric, and which one may be meant.
void question_unknown(const struct recordings *r, struct str name, struct error *e);

// Fills in the query's times: --start and --end, else all of it. -EINVAL with words.
int question_range(const struct options *o, const struct recordings *r, struct query *q, struct error *e);

// A warning for each file with damaged blocks.
void question_report_damage(const struct recordings *r);

#endif
