// summary.h - statistics of a run of values, which readers get without decoding it. The same struct
// is in the file (layout.h), in the entries of a block (block.h), and in the runs of a reader
// (read.h).
#ifndef SONDE_STORE_SUMMARY_H
#define SONDE_STORE_SUMMARY_H

struct store_summary {
    double min, max, sum, sum_squares; // over the values that are not NaN; 0 if there are none
    double first, last;                // possibly NaN
};

#endif
