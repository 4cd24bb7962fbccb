// json_numbers.h - bodies with numbers that JSON, or a double, cannot express.
#ifndef SONDE_HTTP_JSON_NUMBERS_H
#define SONDE_HTTP_JSON_NUMBERS_H

#include "base/str.h"

// Adds `body` to `out` with quotes around NaN, Infinity, numbers past the range of a double, and
// integers of more than 18 digits, so that a parser takes the rest of the body, and a range check
// refuses these values one by one.
void json_quote_numbers(struct str body, struct buf *out);

#endif
