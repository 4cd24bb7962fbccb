// formula.h - "(a + b) / c * 100 > 90": arithmetic over named values.
//
//   weakest:  ||   &&   == !=   < <= > >=   + -   * / %   - ! (in front)   numbers, names, ( )
//
// True is 1, false is 0; every value but 0 counts as true. NaN stands for a missing value. Every
// operation with NaN gives NaN, comparisons included: an unknown value is neither larger nor
// smaller. A formula is compiled once to steps of a stack machine, which then runs for each row.
#ifndef SONDE_QUERY_FORMULA_H
#define SONDE_QUERY_FORMULA_H

#include "base/arena.h"
#include "base/error.h"

enum {
    FORMULA_TEXT_MAX = 16 * 1024,
    FORMULA_STEPS_MAX = 2048,
    FORMULA_NAMES_MAX = 64,
    FORMULA_DEPTH_MAX = 64,  // of parentheses and signs
    FORMULA_STACK_MAX = 128, // operands that wait for their operator
};

struct formula_step;

struct formula {
    const struct formula_step *steps;
    size_t step_count;
    const struct str *names; // each once, in the order of their first use
    size_t name_count;
};

// Names consist of letters, digits and _, and do not begin with a digit. Everything in *out lives
// in `arena`. Returns -EINVAL with the place and the reason.
int formula_parse(struct str text, struct arena *arena, struct formula *out, struct error *e);

// values[i] is the value of names[i].
double formula_value(const struct formula *f, const double *values);

#endif
