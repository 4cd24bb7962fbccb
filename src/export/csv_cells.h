// csv_cells.h - cells of CSV (RFC 4180).
#ifndef SONDE_EXPORT_CSV_CELLS_H
#define SONDE_EXPORT_CSV_CELLS_H

#include "base/str.h"

// Appends a cell. Quotes it if it contains commas, quotes or line ends, or has blanks at an end.
void csv_add_cell(struct buf *out, struct str text);

#endif
