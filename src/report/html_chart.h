// html_chart.h - charts of a report as SVG and as pictures within HTML; no script draws them.
//
//   up to 8 lines       each in a colour of its own, labelled below
//   more                the range of their means, and the mean of all in the middle
//   a paler shade       the range of the points in each bucket
//
// A heat map has a row for each line, as a PNG with a palette: 1,000 rows of 120 buckets take at
// most 160 KB.
#ifndef SONDE_REPORT_HTML_CHART_H
#define SONDE_REPORT_HTML_CHART_H

#include "report/report.h"

enum { CHART_LINES_MAX = 8 };

void html_escape(struct buf *out, struct str text);

// Labels below the chart: the time since the start, or the numbers of the measured values, of which
// a bucket contains bucket_ns.
enum chart_axis { CHART_ELAPSED, CHART_NUMBERS };

// Draws nothing if no bucket has a value.
void chart_lines(const struct report *r, const struct report_measure *m, const char *title,
                 enum chart_axis axis, struct buf *out);
// Draws nothing for fewer than two lines. `most` is the value of the last colour; NaN: the largest
// value.
void chart_heat(const struct report *r, const struct report_measure *m, const char *title,
                double most, struct buf *out);

#endif
