// summary.h - statistics of a run of values, available without decoding. The same struct is in the
// file (layout.h), in the entries of a block (block.h), and in the runs of a reader (read.h).
#ifndef SONDE_STORE_SUMMARY_H
#define SONDE_STORE_SUMMARY_H

struct store_summary {
    double min, max, sum, sum_squares; // of the values that are not NaN; 0 without such values
    double first, last;                // possibly NaN
};

#endif
