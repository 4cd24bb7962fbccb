// gexp_internal.h - the tree that gexp.c makes and gexp_run.c runs.
#ifndef SONDE_QUERY_GEXP_INTERNAL_H
#define SONDE_QUERY_GEXP_INTERNAL_H

#include "query/gexp.h"

enum gexp_function {
    GEXP_ABSOLUTE,
    GEXP_SCALE,
    GEXP_FIRST_DIFF,
    GEXP_MOVING_AVERAGE,
    GEXP_HIGHEST_CURRENT,
    GEXP_HIGHEST_MAX,
    GEXP_TIME_SHIFT,
    GEXP_ALIAS,
    GEXP_SUM,
    GEXP_DIFFERENCE,
    GEXP_MULTIPLY,
    GEXP_DIVIDE,
    GEXP_QUERY, // no function: a leaf
};

struct gexp_node {
    enum gexp_function function;
    struct str text;               // as written
    struct query query;            // of a leaf
    const struct gexp_node **sets; // arguments that are series
    size_t set_count;
    double number;       // the argument of scale and highest…, or the points of movingAverage
    int64_t duration_ns; // the argument of timeShift, or the window of movingAverage; 0: none
    struct str alias;
};

#endif
