#include "agent/rows.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void define_set(struct parts *p, struct sampler_set *set)
{
    sampler_forget_older(set);
    set->defined = true;
    uint32_t *ids = calloc(set->count, sizeof *ids);
    set->failed = ids ? 0 : -ENOMEM;
    for (size_t i = 0; !set->failed && i < set->count; i++) {
        const struct collect_series *series = &set->series[i];
        uint32_t metric;
        set->failed = store_define_metric(p->store, &series->metric->metric, &metric);
        if (!set->failed)
            set->failed =
                store_define_series(p->store, metric, series->labels, series->label_count, &ids[i]);
    }
    if (!set->failed)
        set->failed = store_define_set(p->store, ids, set->count, &set->store_id);
    if (set->failed)
        log_warning("metrics of this node cannot be stored: %s", strerror(-set->failed));
    free(ids);
}

// Records an annotation that explains the gap in the data.
static void note_cut_off(struct parts *p, const struct sampler_row *row)
{
    char text[192];
    snprintf(text, sizeof text, "%.*s%s%s %s", STR_ARG(row->source), row->part[0] ? " " : "",
             row->part, row->cut_off ? "does not answer and is left out" : "answers again");
    log_warning("source %s", text);
    const struct store_label tags[] = {p->labels[0],
                                       {STR("source"), row->source},
                                       {STR("cut_off"), row->cut_off ? STR("yes") : STR("no")}};
    struct store_event event = {.kind = STORE_ANNOTATION,
                                .start_ns = row->t_ns,
                                .end_ns = row->t_ns,
                                .text = str_of(text),
                                .labels = tags,
                                .label_count = sizeof tags / sizeof *tags};
    if (store_append_event(p->store, &event) != 0)
        p->figures.rows_refused++;
}

static void take_row(struct parts *p, struct connections *connections,
                     const struct sampler_row *row)
{
    if (row->source.size) {
        note_cut_off(p, row);
        return;
    }
    if (row->set) {
        if (!row->set->defined)
            define_set(p, row->set);
        if (row->set->failed ||
            store_append_row(p->store, row->set->store_id, row->t_ns, row->values) != 0)
            p->figures.rows_refused += row->set->count;
        return;
    }
    // The instant is complete, so sample the cells of programs and of StatsD now.
    p->figures.sampler = row->figures;
    ingest_sample_cells(p->ingest, row->t_ns);
    ingest_lines_sample(p->ingest, row->t_ns);
    agent_connections_get_stats(connections, &p->figures.connections);
    if (self_metrics_sample(p->own, p->ingest, &p->figures, row->t_ns) > 0)
        ingest_counts_recorded(p->ingest);
}

bool rows_take(struct parts *p, struct connections *connections, int64_t until_ns)
{
    for (const struct sampler_row *row; (row = sampler_next(p->sampler));) {
        if (clock_monotonic_ns() >= until_ns)
            return true;
        take_row(p, connections, row);
        sampler_done(p->sampler);
    }
    return false;
}
