// metrics_page.c - a program that prints docs/metrics.md from the catalogue:
//
//     ninja -C build src/collect/metrics_page && build/src/collect/metrics_page > docs/metrics.md
//
// A test fails if the page in docs/ differs.
#include "collect/catalogue.h"

#include <stdio.h>

static const char *const kinds[] = {[STORE_GAUGE] = "gauge", [STORE_COUNTER] = "counter"};

int main(void)
{
    struct str source = {0};
    puts("<!-- Made from src/collect/catalogue.def by src/collect/metrics_page.c; a change belongs "
         "there. -->\n"
         "# Metrics of the node\n"
         "\n"
         "Every series has the tag `host`; where a metric has others, its text says so. A metric "
         "is collected when its "
         "level is not\n"
         "above the run's (`--telemetry-level`). What cannot be read is missing, never 0. A "
         "counter only grows; the "
         "rate of it is what\n"
         "is mostly wanted. `sonde metrics` prints the same list.\n"
         "\n"
         "Sources are sampled at the collector's rate (`--rate`), slow ones less often, as their "
         "headings say; "
         "`--collect "
         "NAME=SECONDS`\n"
         "and `collectors: {NAME: SECONDS}` in a configuration file change that, `off` leaves a "
         "source out. Instants "
         "are "
         "whole multiples\n"
         "of a source's rate since the epoch, the first one apart, which takes all. What programs "
         "emit is readable at "
         "once\n"
         "([python.md](python.md#asking)); their cells are sampled at `--rate`, and when the "
         "program itself asks a "
         "question.");
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct collect_metric *row = &catalogue_metrics[i];
        if (!str_eq(row->source, source)) {
            source = row->source;
            printf("\n## %.*s\n\n", STR_ARG(source));
            if (collect_source_rate(source) > 0)
                printf("At most every %g s.\n\n", collect_source_rate(source));
            printf("| metric | kind | unit | level | meaning |\n|---|---|---|---|---|\n");
        }
        printf("| `%.*s` | %s | %.*s | %d | %.*s", STR_ARG(row->metric.name),
               kinds[row->metric.kind], STR_ARG(row->metric.unit), row->metric.level,
               STR_ARG(row->metric.help));
        struct str rest = row->aliases;
        for (struct str alias = str_word(&rest); alias.size; alias = str_word(&rest))
            printf(" Also `%.*s`.", STR_ARG(alias));
        puts(" |");
    }
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
