// comparison.h - two sides of runs: the differences of their descriptions, and the values of their
// spans and metrics. Written as text, JSON (command_compare.c) and HTML (compare_html.c).
#ifndef SONDE_CLI_COMPARISON_H
#define SONDE_CLI_COMPARISON_H

#include "cli/options.h"
#include "report/difference.h"

#include <jansson.h>

enum {
    COMPARE_RUNS_MAX = 32, // runs of a side
};

struct timed {
    int64_t t_ns;
    double value;
};

// The values of one span or metric in one run.
struct values {
    struct timed *list; // in order of time
    size_t count, capacity;
    double *plain;
};

struct compared {
    char *name;
    bool is_span;
    struct values of[2][COMPARE_RUNS_MAX];
    bool on_both; // else only one side has it, so no difference can be computed
    struct difference difference;
};

struct comparison {
    const struct options *o;
    char *words[2]; // the arguments, split at commas
    char *runs[2][COMPARE_RUNS_MAX];
    size_t count[2];
    json_t *facts[2];
    struct compared **list; // sorted: the most important differences first
    size_t compared_count, capacity;
    struct error *e;
};

// The names of the statistics, by enum difference_statistic.
extern const char *const comparison_statistics[DIFFERENCE_STATISTICS];

// True if a table has a row for this statistic: spans have no peak, and metrics no total.
bool comparison_shows(const struct compared *x, enum difference_statistic statistic);

// Returns "faster", "slower", "lower" or "higher"; "" if nothing has changed.
const char *comparison_verdict(const struct compared *x);

// Writes "+3.1 % (+2.2 to +4.0)"; "new" if the value was 0 before.
enum { COMPARISON_CHANGE_MAX = 96 };
void comparison_change(const struct difference_estimate *e, char out[COMPARISON_CHANGE_MAX]);

// Called for a difference of the descriptions. NULL: this side does not have the fact.
typedef void comparison_fact_fn(void *user, const char *key, const char *before, const char *after);
// Calls `take` for each difference, and returns their number.
size_t comparison_facts(const struct comparison *c, comparison_fact_fn *take, void *user);

// One page with the changes, a table, and a chart of each span and metric.
void comparison_html(const struct comparison *c, struct buf *out);

#endif
