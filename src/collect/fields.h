// fields.h - files of lines "name value", like /proc/meminfo and /proc/vmstat: reads the numbers of
// chosen lines.
//
// Lines are found by name, wherever they stand. Where each stood is remembered, so a line of no
// interest costs the search for its end; when a name is not where it was, or the number of lines is
// another, all lines are looked at again.
#ifndef SONDE_COLLECT_FIELDS_H
#define SONDE_COLLECT_FIELDS_H

#include "collect/source.h"

enum { FIELDS_MAX = 64, FIELDS_LINES_MAX = 1024 };

struct field {
    struct str name; // with what separates it from the value: "MemTotal:", "pgfault "
    enum metric_symbol row;
    double scale;    // the metric is the number times this
    struct str unit; // must stand behind the number; empty = nothing may
};

// Zero-initialise; `table` has at most FIELDS_MAX entries.
struct fields {
    const struct field *table;
    size_t count;
    size_t lines;                   // of the text last read
    uint8_t memo[FIELDS_LINES_MAX]; // 1 + the field of each line; 0 = of no interest
    uint64_t numbers[FIELDS_MAX];   // of the text last read…
    bool have[FIELDS_MAX];          // …where there is one
};

// How many of the fields have a number.
size_t fields_read(struct fields *f, struct str text);

// Puts all numbers that there are.
void fields_put(const struct fields *f, const struct source *s, double *values);

#endif
