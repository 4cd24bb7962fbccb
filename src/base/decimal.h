// decimal.h - decimal numbers of text as doubles, some ten times as fast as strtod.
#ifndef SONDE_BASE_DECIMAL_H
#define SONDE_BASE_DECIMAL_H

// Reads a number [+-]DIGITS[.DIGITS][e[+-]DIGITS] that begins at `at`, and returns its end. Stores
// the closest double. Returns NULL if there is no number, or if rounding it needs strtod (more than
// 19 digits, a denormal number, …).
const char *decimal_scan(const char *at, const char *end, double *out);

#endif
