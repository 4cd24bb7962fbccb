#include "query/aggregator_table.h"

#define QUANTILE(rule, per_mille) FOLD_VALUES, BETWEEN_LINEAR, rule, per_mille

static const struct query_aggregator_row rows[QUERY_AGGREGATOR_COUNT] = {
    [QUERY_NONE] = {"none", FOLD_SUM, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_SUM] = {"sum", FOLD_SUM, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_MIN] = {"min", FOLD_MIN, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_MAX] = {"max", FOLD_MAX, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_AVG] = {"avg", FOLD_AVG, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_MEDIAN] = {"median", QUANTILE(QUANTILE_UPPER_MIDDLE, 500)},
    [QUERY_MULT] = {"mult", FOLD_MULT, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_DEV] = {"dev", FOLD_DEV, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_DIFF] = {"diff", FOLD_DIFF, BETWEEN_LINEAR, QUANTILE_NONE, 0},
    [QUERY_COUNT] = {"count", FOLD_COUNT, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_FIRST] = {"first", FOLD_FIRST, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_LAST] = {"last", FOLD_LAST, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_SQUARE_SUM] = {"squareSum", FOLD_SQUARES, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_ZIMSUM] = {"zimsum", FOLD_SUM, BETWEEN_ZERO, QUANTILE_NONE, 0},
    [QUERY_MIMMIN] = {"mimmin", FOLD_MIN, BETWEEN_NOTHING, QUANTILE_NONE, 0},
    [QUERY_MIMMAX] = {"mimmax", FOLD_MAX, BETWEEN_NOTHING, QUANTILE_NONE, 0},
    [QUERY_PFSUM] = {"pfsum", FOLD_SUM, BETWEEN_PREVIOUS, QUANTILE_NONE, 0},
    [QUERY_P50] = {"p50", QUANTILE(QUANTILE_R6, 500)},
    [QUERY_P75] = {"p75", QUANTILE(QUANTILE_R6, 750)},
    [QUERY_P90] = {"p90", QUANTILE(QUANTILE_R6, 900)},
    [QUERY_P95] = {"p95", QUANTILE(QUANTILE_R6, 950)},
    [QUERY_P99] = {"p99", QUANTILE(QUANTILE_R6, 990)},
    [QUERY_P999] = {"p999", QUANTILE(QUANTILE_R6, 999)},
    [QUERY_EP50R3] = {"ep50r3", QUANTILE(QUANTILE_R3, 500)},
    [QUERY_EP50R7] = {"ep50r7", QUANTILE(QUANTILE_R7, 500)},
    [QUERY_EP75R3] = {"ep75r3", QUANTILE(QUANTILE_R3, 750)},
    [QUERY_EP75R7] = {"ep75r7", QUANTILE(QUANTILE_R7, 750)},
    [QUERY_EP90R3] = {"ep90r3", QUANTILE(QUANTILE_R3, 900)},
    [QUERY_EP90R7] = {"ep90r7", QUANTILE(QUANTILE_R7, 900)},
    [QUERY_EP95R3] = {"ep95r3", QUANTILE(QUANTILE_R3, 950)},
    [QUERY_EP95R7] = {"ep95r7", QUANTILE(QUANTILE_R7, 950)},
    [QUERY_EP99R3] = {"ep99r3", QUANTILE(QUANTILE_R3, 990)},
    [QUERY_EP99R7] = {"ep99r7", QUANTILE(QUANTILE_R7, 990)},
    [QUERY_EP999R3] = {"ep999r3", QUANTILE(QUANTILE_R3, 999)},
    [QUERY_EP999R7] = {"ep999r7", QUANTILE(QUANTILE_R7, 999)},
    [QUERY_P25] = {"p25", QUANTILE(QUANTILE_R6, 250)},
};

const struct query_aggregator_row *query_aggregator_row(enum query_aggregator a)
{
    return &rows[a];
}

enum query_aggregator query_aggregator_of(struct str name)
{
    unsigned a = 0;
    while (a < QUERY_AGGREGATOR_COUNT && !str_eq(name, str_of(rows[a].name)))
        a++;
    return (enum query_aggregator)a;
}

struct str query_aggregator_name(enum query_aggregator a)
{
    return (unsigned)a < QUERY_AGGREGATOR_COUNT ? str_of(rows[a].name) : STR("");
}
