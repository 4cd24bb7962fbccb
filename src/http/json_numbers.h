// json_numbers.h - handles bodies with numbers that JSON, or a double, cannot express.
#ifndef SONDE_HTTP_JSON_NUMBERS_H
#define SONDE_HTTP_JSON_NUMBERS_H

#include "base/str.h"

// Appends `body` to `out` with quotes around NaN, Infinity, numbers outside the range of a double,
// and integers of more than 18 digits. A parser then accepts the rest of the body, and a range
// check rejects these values one by one.
void json_quote_numbers(struct str body, struct buf *out);

#endif
