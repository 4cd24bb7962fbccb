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
         "sonde records these metrics of each node. `sonde metrics` prints the same list.\n"
         "\n"
         "- **Level.** sonde records a metric if its level is not above the level of the run\n"
         "  (`--telemetry-level`).\n"
         "- **Tags.** Every series has the tag `host`; the column *meaning* names further tags.\n"
         "- **Missing values.** If a value cannot be read, it is missing, never 0.\n"
         "- **Late values.** The agent waits 20 ms for a device or a file server; for GPUs half\n"
         "  of the rate, at most 2 s. A later value is recorded at the next sample. If that comes\n"
         "  more than 5 s later, the agent looks for the value after 0.5 s, and records it then.\n"
         "  A value that takes more than 10 s is missing. `sonde status` names a source that does\n"
         "  not answer for more than a second.\n"
         "- **Counters.** A counter only grows. Usually you query its rate.\n"
         "- **Rate.** The agent samples each source every `--rate` seconds, and slow sources less\n"
         "  often, as their headings say. `--collect NAME=SECONDS`, or `collectors: {NAME: "
         "SECONDS}` "
         "in a\n"
         "  configuration file, changes the rate of a source; `off` switches the source off. The "
         "agent\n"
         "  samples at whole multiples of the rate since the epoch. Only the first sample comes at "
         "once, and\n"
         "  reads all sources.\n"
         "\n"
         "Queries also find the points that programs emit, without any delay "
         "([python.md](python.md#asking)).\n"
         "The agent samples the cells of programs at `--rate`, and when the program itself sends a "
         "query.");
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
