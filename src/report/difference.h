// difference.h - what has changed between runs: the values of one span or metric before and after,
// how sure the difference is, and which of many differences are worth naming. Pure arithmetic.
//
// Values that follow each other in a run are alike, so n of them say less than n independent ones
// would. Each run is therefore cut into batches of successive values, long enough that the
// statistics of neighbouring batches are hardly alike; their spread is the error of the run's
// statistic. With several runs on a side, the spread between runs counts, too. docs/compare.md has
// the method.
#ifndef SONDE_REPORT_DIFFERENCE_H
#define SONDE_REPORT_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DIFFERENCE_BATCHES_MAX = 64,
    DIFFERENCE_BATCHES_MIN = 8, // with fewer, a single run says nothing of its error
    // Values of which at least one is above the 95th percentile with 64 %
    DIFFERENCE_P95_BATCH = 20,
};

// Values in the order of their times.
struct difference_run {
    const double *values;
    size_t count;
};

enum difference_statistic {
    DIFFERENCE_MEAN,
    DIFFERENCE_P50,
    DIFFERENCE_P95,
    DIFFERENCE_TOTAL,
    DIFFERENCE_PEAK,
    DIFFERENCE_STATISTICS
};

// Without the warm-up, except total and peak. Of several runs on a side the mean of their
// statistics.
struct difference_estimate {
    double before, after;
    bool has_interval; // else there are too few values, or runs, and what follows is 0
    double error;      // standard error of after - before
    double freedom;    // degrees of freedom of the error
    double low, high;  // of after - before, with 95 %
    double p;          // how probable a difference as large is without any change
};

enum difference_verdict { DIFFERENCE_SAME, DIFFERENCE_LOWER, DIFFERENCE_HIGHER };

struct difference {
    struct difference_estimate of[DIFFERENCE_STATISTICS];
    size_t count_before, count_after;     // values
    size_t warm_up_before, warm_up_after; // of these, left out as warm-up
    bool between_runs;                    // the error is that between runs, too
    enum difference_verdict verdict;      // by difference_judge
};

// Compares two sides of one run or more, each with at least one value. Values that are no numbers
// are an error of the caller. False: no memory.
bool difference_of(const struct difference_run *before, size_t runs_before,
                   const struct difference_run *after, size_t runs_after, struct difference *out);

// Sets the verdict of each: HIGHER or LOWER if its mean or its median has changed by at least
// `least` (0.01: 1 %), and the noise of the values and of the runs does so alone so rarely that at
// most 0.5 % of these verdicts are expected to be false (Benjamini and Hochberg). A difference
// without interval is SAME.
void difference_judge(struct difference *list, size_t count, double least);

// (after - before) / |before|; NAN if before is 0 and after is not.
double difference_relative(double before, double after);

// Leading values that are unlike the rest of the run, at most a quarter of it.
size_t difference_warm_up(const struct difference_run *run);

// Probability that |t| of Student's distribution is at least this; and the |t| that has the
// probability.
double difference_student_p(double t, double freedom);
double difference_student_t(double p, double freedom);

#endif
