// catalogue.c - catalogue.def as a table, and the lookup of metrics by name.
#include "collect/catalogue.h"

// STR without its type, as a constant initialiser.
#define TEXT(literal)                  \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }

const struct collect_metric catalogue_metrics[METRIC_COUNT] = {
#define METRIC(symbol, name, kind, unit, level, source, aliases, help) \
    [METRIC_##symbol] = {                                              \
        {TEXT(name), TEXT(unit), TEXT(help), STORE_##kind, level}, TEXT(source), TEXT(aliases)},
#include "collect/catalogue.def"
#undef METRIC
};

const struct collect_metric *collect_catalogue(size_t *count)
{
    *count = METRIC_COUNT;
    return catalogue_metrics;
}

const struct collect_metric *collect_find(struct str name)
{
    if (name.size == 0)
        return NULL;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (str_eq(catalogue_metrics[i].metric.name, name))
            return &catalogue_metrics[i];
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct str rest = catalogue_metrics[i].aliases;
        for (struct str alias = str_word(&rest); alias.size; alias = str_word(&rest))
            if (str_eq(alias, name))
                return &catalogue_metrics[i];
    }
    return NULL;
}

bool collect_alias(size_t index, struct str *alias, struct str *metric)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct str rest = catalogue_metrics[i].aliases;
        for (*alias = str_word(&rest); alias->size; *alias = str_word(&rest)) {
            *metric = catalogue_metrics[i].metric.name;
            if (!index--)
                return true;
        }
    }
    return false;
}

size_t catalogue_rows(struct str source, enum metric_symbol *first)
{
    size_t from = 0, to;
    while (from < METRIC_COUNT && !str_eq(catalogue_metrics[from].source, source))
        from++;
    for (to = from; to < METRIC_COUNT && str_eq(catalogue_metrics[to].source, source);)
        to++;
    *first = (enum metric_symbol)from;
    return to - from;
}
