// words.h - formats the figures of a report for people.
#ifndef SONDE_REPORT_WORDS_H
#define SONDE_REPORT_WORDS_H

#include "report/report.h"

enum { WORDS_MAX = 48 };

struct words_number {
    char text[WORDS_MAX];
};
// Writes four digits, with an exponent only for values that are very small or need more than 15
// digits: "0.3125", "12346", "4e-05". NaN is "-".
struct words_number words_number(double value);
// Writes a value: "3.2 cores", "1.5 GiB", "12.4 MiB/s", "0.31 s". NaN is "-".
void words_value(double value, const char *unit, char out[WORDS_MAX]);
// Writes a share: "38 %", "0.4 %". NaN is "-".
void words_share(double share, char out[WORDS_MAX]);
// Writes a local time: "2026-11-23 09:15:00".
void words_time(int64_t t_ns, char out[WORDS_MAX]);
// Writes a duration: "3.2 s", "4 min 10 s".
void words_duration(int64_t ns, char out[WORDS_MAX]);
// Writes an energy: "1.2 kWh", "45 Wh".
void words_energy(double joules, char out[WORDS_MAX]);
// Returns "sure", "likely" or "possible".
const char *words_sureness(enum report_sureness s);
// Writes the end of the run: "ended with exit code 0", "runs", …
void words_end(const struct report *r, char out[WORDS_MAX]);
// Writes "4 nodes: n0, n1, n2, n3" or "64 nodes: n0, n1, n2 … n63".
void words_nodes(const struct report *r, struct buf *out);

#endif
