// gather_totals.c - the calls and the time of what tracers record as spans. A tracer records the
// first 10,000 spans of a name in a process, and counts all calls in metrics.
#include "report/gather.h"

#include <errno.h>

// These counters begin at 0 with the program, so their largest value is their total.
static const struct {
    const char *metric, *calls, *seconds, *tag;
} tracers[] = {
    {"kokkos_region_seconds", "sum:0all-max:kokkos_regions{region=*}",
     "sum:0all-max:kokkos_region_seconds{region=*}", "region"},
    {"nccl_seconds", "sum:0all-max:nccl_calls{op=*}", "sum:0all-max:nccl_seconds{op=*}", "op"},
    {"nvtx_range_seconds", "sum:0all-max:nvtx_ranges{range=*}",
     "sum:0all-max:nvtx_range_seconds{range=*}", "range"},
    {"python_function_seconds", "sum:0all-max:python_function_calls{function=*}",
     "sum:0all-max:python_function_seconds{function=*}", "function"},
    {"roctx_range_seconds", "sum:0all-max:roctx_ranges{range=*}",
     "sum:0all-max:roctx_range_seconds{range=*}", "range"},
};
enum { TRACERS = sizeof tracers / sizeof *tracers };

int gather_totals(struct gather *g,
                  void (*take)(void *user, struct str name, double calls, double seconds),
                  void *user)
{
    const char *expressions[2 * TRACERS], *tags[TRACERS];
    size_t count = 0;
    int rc = gather_metrics(g);
    if (rc)
        return rc;
    for (size_t i = 0; i < TRACERS; i++) {
        if (!gather_metric(g, tracers[i].metric))
            continue;
        tags[count] = tracers[i].tag;
        expressions[2 * count] = tracers[i].calls;
        expressions[2 * count++ + 1] = tracers[i].seconds;
    }
    struct sonde_result *result = NULL;
    if (count)
        rc = gather_ask(g, expressions, 2 * count, NULL, g->report->first_ns, g->report->to_ns,
                        &result);
    if (gather_is_too_much(rc)) {
        gather_note_missing(g, "the calls that tracers have counted");
        return 0;
    }
    for (size_t i = 0; !rc && result && i < result->count; i++) {
        const struct sonde_series *s = &result->series[i];
        size_t query = result->queries ? result->queries[i] : 0;
        double value = s->count ? s->values[0] : 0;
        take(user, gather_tag(s, tags[query / 2]), query % 2 ? 0 : value, query % 2 ? value : 0);
    }
    sonde_result_free(result);
    return rc;
}
