// plot.h - `sonde query --plot`: each series as a line of block characters, to the terminal's width
// (80 columns in a pipe).
#ifndef SONDE_CLI_PLOT_H
#define SONDE_CLI_PLOT_H

#include "query/query.h"

// Few series: the name, then "least LINE greatest, last". All lines have one time range; each has
// its own scale. A character shows the mean of its points; where there are none it is blank. Below
// the lines stand the times of both ends. `unit` may be empty.
void plot_series(struct buf *out, const struct query_result *result, struct str unit);

#endif
