// decimal.h - decimal numbers of text as doubles, some ten times as fast as strtod.
#ifndef SONDE_BASE_DECIMAL_H
#define SONDE_BASE_DECIMAL_H

// Reads a number [+-]DIGITS[.DIGITS][e[+-]DIGITS] from `at` on, as far as it reaches, and returns
// its end. NULL: there is none, or it takes strtod to round it (one of more than 19 digits, a
// denormal one, …). The double is the closest one.
const char *decimal_scan(const char *at, const char *end, double *out);

#endif
