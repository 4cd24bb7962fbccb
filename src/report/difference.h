// difference.h - the differences between runs: compares the values of one span or metric before and
// after, estimates how sure the difference is, and selects those of many differences that are worth
// reporting. Pure arithmetic.
//
// Consecutive values of a run are alike, so n of them contain less information than n independent
// ones. Each run is therefore divided into batches of consecutive values, long enough that the
// statistics of neighbouring batches are hardly alike; their spread is the error of the run's
// statistic. With several runs on a side, the spread between runs counts, too. docs/compare.md
// describes the method.
#ifndef SONDE_REPORT_DIFFERENCE_H
#define SONDE_REPORT_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DIFFERENCE_BATCHES_MAX = 64,
    DIFFERENCE_BATCHES_MIN = 8, // with fewer, the error of a single run is unknown
    // Of 20 values, at least one is above the 95th percentile with a probability of 64 %
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

// Excludes the warm-up, except for total and peak. With several runs on a side, the mean of their
// statistics.
struct difference_estimate {
    double before, after;
    bool has_interval; // false: too few values or runs, and the fields below are 0
    double error;      // standard error of after - before
    double freedom;    // degrees of freedom of the error
    double low, high;  // of after - before, with 95 %
    double p;          // the probability of such a difference without any change
};

enum difference_verdict { DIFFERENCE_SAME, DIFFERENCE_LOWER, DIFFERENCE_HIGHER };

struct difference {
    struct difference_estimate of[DIFFERENCE_STATISTICS];
    size_t count_before, count_after;     // values
    size_t warm_up_before, warm_up_after; // values that are left out as warm-up
    bool between_runs;                    // the error includes that between runs
    enum difference_verdict verdict;      // set by difference_judge
};

// Compares two sides of one run or more, each with at least one value. The caller must not pass NaN
// or infinities. False: out of memory.
bool difference_of(const struct difference_run *before, size_t runs_before,
                   const struct difference_run *after, size_t runs_after, struct difference *out);

// Sets the verdict of each: HIGHER or LOWER if its mean or its median has changed by at least
// `least` (0.01: 1 %), and noise is so unlikely as the cause that at most 0.5 % of these verdicts
// are expected to be false (Benjamini and Hochberg). A difference without interval is SAME.
void difference_judge(struct difference *list, size_t count, double least);

// (after - before) / |before|; NAN if before is 0 and after is not.
double difference_relative(double before, double after);

// The number of leading values that differ from the rest of the run, at most a quarter of it.
size_t difference_warm_up(const struct difference_run *run);

// The probability that |t| of Student's distribution is at least this; and the |t| with this
// probability.
double difference_student_p(double t, double freedom);
double difference_student_t(double p, double freedom);

#endif
