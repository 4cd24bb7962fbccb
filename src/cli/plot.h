// plot.h - `sonde query --plot`: draws each series as a line of block characters, in the width of
// the terminal (80 columns in a pipe).
#ifndef SONDE_CLI_PLOT_H
#define SONDE_CLI_PLOT_H

#include "query/query.h"

// Draws a few series. A line has the name, then "least LINE greatest, last". All lines have the
// same time range, but each has its own scale. A character shows the mean of its points; a blank
// means that there are none. The times of both ends are below the lines. `unit` may be empty.
void plot_series(struct buf *out, const struct query_result *result, struct str unit);

#endif
