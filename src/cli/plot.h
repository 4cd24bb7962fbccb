// plot.h - `sonde query --plot`: draws each series as a line of block characters, in the width of
// the terminal (80 columns in a pipe).
#ifndef SONDE_CLI_PLOT_H
#define SONDE_CLI_PLOT_H

#include "query/query.h"

// Draws few series: the name, then "least LINE greatest, last". All lines share one time range;
// each has its own scale. A character shows the mean of its points, and a blank means no points.
// The times of both ends are below the lines. `unit` may be empty.
void plot_series(struct buf *out, const struct query_result *result, struct str unit);

#endif
