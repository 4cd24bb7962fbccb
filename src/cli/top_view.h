// top_view.h - draws a top_model into a screen. It is a pure function: the same model gives the
// same cells.
//
//   row 0          job, command, state, time
//   row 1          nodes, level, points, drops, restarts, findings, missing nodes; or the
//                  reason why the job does not answer
//   row 2          views, or the opened rows; and the time that is shown
//   rows 3 …       tables with a title each
//   the last row   keys; or the filter while it is typed
#ifndef SONDE_CLI_TOP_VIEW_H
#define SONDE_CLI_TOP_VIEW_H

#include "cli/screen.h"
#include "cli/top_model.h"

// Clamps m->selected and m->scroll to the rows, then draws.
void top_view_draw(struct screen *s, struct top_model *m);
// Returns the number of table rows on a screen of this height.
size_t top_view_page(const struct screen *s);

#endif
