// difference.h - the differences between runs. Compares the values of one span or metric before and
// after, estimates how certain the difference is, and selects the differences that are worth
// reporting. Pure arithmetic.
//
// Consecutive values of a run are correlated, so n of them contain less information than n
// independent values. Each run is therefore divided into batches of consecutive values. Batches are
// long enough that the statistics of neighbouring batches are hardly correlated. The spread of
// these statistics is the error of the run's statistic. With several runs on a side, the spread
// between runs counts, too. docs/compare.md describes the method.
#ifndef SONDE_REPORT_DIFFERENCE_H
#define SONDE_REPORT_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DIFFERENCE_BATCHES_MAX = 64,
    DIFFERENCE_BATCHES_MIN = 8, // with fewer batches, the error of a single run is unknown
    // Of 20 values, at least one is above the 95th percentile with a probability of 64 %
    DIFFERENCE_P95_BATCH = 20,
};

// The values of a run, in order of time.
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

// One statistic of both sides. It excludes the warm-up, except for total and peak. If a side has
// several runs, it is the mean of their statistics.
struct difference_estimate {
    double before, after;
    bool has_interval; // false: there are too few values or runs, and the fields below are 0
    double error;      // standard error of after - before
    double freedom;    // degrees of freedom of the error
    double low, high;  // interval of after - before, with 95 % probability
    double p;          // probability of such a difference if nothing has changed
};

enum difference_verdict { DIFFERENCE_SAME, DIFFERENCE_LOWER, DIFFERENCE_HIGHER };

struct difference {
    struct difference_estimate of[DIFFERENCE_STATISTICS];
    size_t count_before, count_after;     // number of values
    size_t warm_up_before, warm_up_after; // number of values left out as warm-up
    bool between_runs;                    // the error includes the spread between runs
    enum difference_verdict verdict;      // set by difference_judge
};

// Compares two sides. Each has at least one run, and each run at least one value. The caller must
// not pass NaN or infinities. Returns false if memory is exhausted.
bool difference_of(const struct difference_run *before, size_t runs_before,
                   const struct difference_run *after, size_t runs_after, struct difference *out);

// Sets the verdict of each difference: HIGHER or LOWER if its mean or its median has changed by at
// least `least` (0.01: 1 %), and noise is an unlikely cause, such that at most 0.5 % of these
// verdicts are expected to be false (Benjamini and Hochberg). A difference without interval is
// SAME.
void difference_judge(struct difference *list, size_t count, double least);

// Returns (after - before) / |before|, or NAN if before is 0 and after is not.
double difference_relative(double before, double after);

// Returns the number of leading values that differ from the rest of the run, at most a quarter of
// it.
size_t difference_warm_up(const struct difference_run *run);

// Return the probability that |t| of Student's distribution is at least `t`, and the |t| that has
// the probability `p`.
double difference_student_p(double t, double freedom);
double difference_student_t(double p, double freedom);

#endif
