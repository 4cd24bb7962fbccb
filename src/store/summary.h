// summary.h - what is known of a run of values without decoding them. The same struct lies in the
// file (layout.h), in the entries of a block (block.h), and in the runs of a reader (read.h).
#ifndef SONDE_STORE_SUMMARY_H
#define SONDE_STORE_SUMMARY_H

struct store_summary {
    double min, max, sum, sum_squares; // of the values that are not NaN; 0 if there are none
    double first, last;                // NaN or not
};

#endif
