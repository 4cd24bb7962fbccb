// request_times.c - one gauge per route. It is defined at the route's first request, which takes a
// microsecond; later requests find it.
#include "aggregator/request_times.h"

#include "base/clock.h"
#include "collect/catalogue.h"

#include <sonde.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool enabled;

void request_times_open(const char *agent_socket, int level)
{
    const struct store_metric *metric = &catalogue_metrics[METRIC_SONDE_REQUEST_TIME].metric;
    const char *zones = getenv("TZDIR"); // the query engine also reads time zones from this folder
    char level_text[16], *kept = zones ? strdup(zones) : NULL;
    if (!agent_socket || level < metric->level)
        return;
    snprintf(level_text, sizeof level_text, "%d", level);
    clearenv();
    enabled =
        setenv("SONDE_SOCKET", agent_socket, 1) == 0 && setenv("SONDE_LEVEL", level_text, 1) == 0;
    if (kept)
        setenv("TZDIR", kept, 1);
    free(kept);
}

void request_times_note(struct str path, int64_t took_ns)
{
    if (!enabled)
        return;
    const struct store_metric *metric = &catalogue_metrics[METRIC_SONDE_REQUEST_TIME].metric;
    const struct sonde_tag tag = {"path", path.data};
    sonde_handle gauge = sonde_define(&(struct sonde_metric){.name = metric->name.data,
                                                             .unit = metric->unit.data,
                                                             .help = metric->help.data,
                                                             .kind = SONDE_GAUGE,
                                                             .level = metric->level,
                                                             .tags = &tag,
                                                             .tag_count = 1});
    sonde_emit(gauge, (double)took_ns / NS_PER_S);
}
