// formula.h - "(a + b) / c * 100 > 90": arithmetic over named values.
//
//   weakest ||   &&   == !=   < <= > >=   + -   * / %   - ! (in front)   strongest: numbers, names, ( )
//
// True is 1, false is 0; every value but 0 counts as true. The result of an operation with NaN, a
// value that does not exist, is NaN, also of a comparison: an unknown value is neither larger nor
// smaller. Compiled once to steps on a stack, then run for row after row.
#ifndef SONDE_QUERY_FORMULA_H
#define SONDE_QUERY_FORMULA_H

#include "base/arena.h"
#include "base/error.h"

enum {
    FORMULA_TEXT_MAX = 16 * 1024,
    FORMULA_STEPS_MAX = 2048,
    FORMULA_NAMES_MAX = 64,
    FORMULA_DEPTH_MAX = 64,  // of parentheses and signs
    FORMULA_STACK_MAX = 128, // values that wait for their operator
};

struct formula_step;

struct formula {
    const struct formula_step *steps;
    size_t step_count;
    const struct str *names; // each once, in the order in which they first stand there
    size_t name_count;
};

// Names are letters, digits and _, not a digit first. Everything in *out lives in `arena`. -EINVAL
// with the place and the reason.
int formula_parse(struct str text, struct arena *arena, struct formula *out, struct error *e);

// values[i] is what names[i] stands for.
double formula_value(const struct formula *f, const double *values);

#endif
