// openmetrics.c - /metrics: the latest value of every series in OpenMetrics' text format, for
// Prometheus to scrape.
//
//   # HELP cpu_user_seconds Processor time in programs, over all processors.
//   # TYPE cpu_user_seconds counter
//   # UNIT cpu_user_seconds seconds
//   cpu_user_seconds_total{host="node1"} 12.5 1356998400.123
//   # EOF
//
// Kind, unit and help come from the metric's definition in the file. OpenMetrics' names may contain
// only [A-Za-z0-9_:]; other characters become _. If two metrics get the same name by this rule, the
// later one gets a suffix of its own. Each value has its own time, so Prometheus stores a value
// once, even if it scrapes it twice.
#include "formats/openmetrics.h"
#include "base/clock.h"
#include "base/map.h"
#include "faces/native/handlers.h"

#include <errno.h>

enum { LABELS_MAX = STORE_LABELS_MAX + 1 }; // a file may add one
_Static_assert((int)LABELS_MAX <= (int)OPENMETRICS_LABELS_MAX, "a series has no more");

static void write_labels(struct buf *out, const struct query_listed *s)
{
    struct openmetrics_label labels[LABELS_MAX];
    size_t count = s->label_count < LABELS_MAX ? s->label_count : LABELS_MAX;
    for (size_t i = 0; i < count; i++)
        labels[i] = (struct openmetrics_label){s->labels[i].key, s->labels[i].value};
    openmetrics_add_labels(out, labels, count);
}

static void write_all(struct buf *out, const struct query_listed *all, size_t count,
                      int64_t shift_ns, struct arena *arena)
{
    struct map taken = {0};
    struct str family = {0};
    bool counter = false;
    for (size_t i = 0; i < count && !out->failed; i++) {
        const struct query_listed *s = &all[i];
        if (i == 0 || !str_eq(s->metric->name, all[i - 1].metric->name)) {
            // files may differ in the kind: the first one counts
            counter = s->metric->kind == STORE_COUNTER;
            family = openmetrics_family(s->metric->name, counter, &taken, arena);
            openmetrics_add_head(out, family, counter, s->metric->unit, s->metric->help);
        }
        if (counter && !(s->value >= 0))
            continue; // counters are never negative
        buf_printf(out, "%.*s%s", STR_ARG(family), counter ? "_total" : "");
        write_labels(out, s);
        buf_add_char(out, ' ');
        openmetrics_add_value(out, s->value);
        buf_printf(out, " %.3f\n", (double)(s->t_ns + shift_ns) / NS_PER_S);
    }
    map_free(&taken);
}

// Writes the clocks of the other nodes, which the hub knows.
static void write_clocks(struct hub *hub, struct arena *arena, struct buf *out)
{
    const struct hub_node *nodes;
    size_t count = 0;
    bool any = false;
    if (hub_nodes(hub, arena, &nodes, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!nodes[i].offset_known)
            continue;
        if (!any)
            buf_add_str(
                out,
                STR("# HELP clock_offset_seconds How far the node's clock is ahead of this one's.\n"
                    "# TYPE clock_offset_seconds gauge\n# UNIT clock_offset_seconds seconds\n"));
        any = true;
        buf_add_str(out, STR("clock_offset_seconds{host=\""));
        openmetrics_add_escaped(out, nodes[i].host);
        buf_add_str(out, STR("\"} "));
        openmetrics_add_value(out, (double)nodes[i].offset_ns / NS_PER_S);
        buf_add_char(out, '\n');
    }
}

void openmetrics_latest(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    const struct query_listed *all;
    size_t count;
    struct query_series_filter f = {.latest = true, .from_ns = INT64_MIN};
    if (service_read(service, r, INT64_MAX, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (reading_series(&d, &f, &all, &count, &e) != 0) {
        answer_failure(a, &e);
    } else {
        a->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        write_all(&a->body, all, count, service->shift_ns, &r->arena);
        if (service->reads.hub)
            write_clocks(service->reads.hub, &r->arena, &a->body);
        buf_add_str(&a->body, STR("# EOF\n"));
    }
    service_read_end(&d, a);
}
