// fields.h - files of lines "name value", like /proc/meminfo and /proc/vmstat: reads the numbers of
// chosen lines.
//
// Lines are found by name, in any order. The reader remembers the position of each line, so an
// unused line costs only the search for its end. If a name has moved, or the number of lines has
// changed, it examines all lines again.
#ifndef SONDE_COLLECT_FIELDS_H
#define SONDE_COLLECT_FIELDS_H

#include "collect/source.h"

enum { FIELDS_MAX = 64, FIELDS_LINES_MAX = 1024 };

struct field {
    struct str name; // with its separator: "MemTotal:", "pgfault "
    enum metric_symbol row;
    double scale;    // the metric is the number × scale
    struct str unit; // must follow the number; empty = nothing may follow
};

// Zero-initialise; `table` has at most FIELDS_MAX entries.
struct fields {
    const struct field *table;
    size_t count;
    size_t lines;                   // of the text last read
    uint8_t memo[FIELDS_LINES_MAX]; // 1 + the field of each line; 0 = unused
    uint64_t numbers[FIELDS_MAX];   // of the text last read…
    bool have[FIELDS_MAX];          // …if the text has it
};

// Returns the number of fields with a number.
size_t fields_read(struct fields *f, struct str text);

// Puts all numbers of the text.
void fields_put(const struct fields *f, const struct source *s, double *values);

#endif
