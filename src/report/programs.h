// programs.h - figures of the metrics that the user's programs emit, and pairs of metrics that
// agree, such as the prediction of a model and the value that it predicts.
#ifndef SONDE_REPORT_PROGRAMS_H
#define SONDE_REPORT_PROGRAMS_H

#include "report/report.h"

enum { AGREEMENTS_MAX = REPORT_OWN_MAX * (REPORT_OWN_MAX - 1) / 2 };

// Figures over all series of a metric. NaN: unknown. A counter has no `least`, `first` and `last`;
// its `mean` and `greatest` are rates.
struct program_metric {
    double points, mean, least, greatest;
    double first, last; // means of the first and the last tenth of the buckets with values
    // Sum of the greatest values of a counter's series. Unlike the growth since the first sample,
    // it has everything that short programs have counted.
    double reached;
};

struct program_metric program_metric_of(const struct report *r, const struct report_measure *m);

// Two gauges agree if their buckets correlate with 0.9 or more, and the root mean square of their
// differences is below half of the standard deviation of each. Only buckets count in which series
// of both with the same tags have values, and at least 10 of them. Metrics with different units do
// not agree.
struct report_agreement {
    const struct report_measure *a, *b; // in the order of report.own
    double correlation;
    double difference; // root mean square
    // in the first and in the second half of the common buckets' time; NaN: without buckets
    double first_half, second_half;
    size_t buckets;
};

// Returns the number of agreements in *out.
size_t program_agreements(const struct report *r, struct report_agreement out[AGREEMENTS_MAX]);

#endif
