// quantity.h - numbers for narrow columns: three digits and a prefix.
//
//   bytes      1.50Ki 12.3Mi     (powers of 1024; the title says B or B/s)
//   percent    98.5
//   others     0.123 1.23 12.3 123 1.23k 45.6M 1.2e-5
#ifndef SONDE_CLI_QUANTITY_H
#define SONDE_CLI_QUANTITY_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

enum { QUANTITY_MAX = 16, QUANTITY_WIDTH = 6 };

// Writes a value. NaN is "-". `unit` may be NULL.
void quantity_text(double value, const char *unit, char out[QUANTITY_MAX]);
// Writes "350ms", "4.5s", "3m20s", "2h05m" or "3d4h".
void quantity_duration(int64_t ns, char out[QUANTITY_MAX]);
// Writes "2026-11-23 06:04:14", local time.
enum { QUANTITY_TIME_MAX = 32 };
void quantity_time(int64_t t_ns, char out[QUANTITY_TIME_MAX]);
// Returns the text after a value of this unit: "B/s", "%", "W"; "" if it has none.
const char *quantity_unit(const char *unit, int rate);

// Parses "512M" or "2GiB", in powers of 1024. quantity_parse_seconds parses "90", "5m", "2h",
// "1.5d". Returns false for an invalid text.
bool quantity_parse_bytes(struct str s, double *out);
bool quantity_parse_seconds(struct str s, double *out);

#endif
