// selection.h - selects the metrics, series and events of an export.
#ifndef SONDE_EXPORT_SELECTION_H
#define SONDE_EXPORT_SELECTION_H

#include "base/arena.h"
#include "export/export.h"
#include "query/filter.h"

struct export_selection {
    // Names and patterns, separated by commas: "loss,gpu_*"; NULL: all metrics.
    const char *metrics;
    // Filters, as in the braces of an expression: "host=n1|n2,rank=*"; NULL: all series.
    const char *filters;
    int64_t from_ns, to_ns; // both inclusive
    bool events;
    // without a fill policy; if not `on`, the points are exported unchanged
    struct query_downsample downsample;
    // folder for unpacked data beyond the memory limit; NULL: none
    const char *temporary;
    struct str span; // export the values of each span of this name instead of points; empty: points
};

// A prepared selection. The texts of the selection must outlive it.
struct export_judge {
    const struct export_selection *selection;
    const struct query_filter *filters;
    struct query_matcher *matchers;
    size_t filter_count, matcher_count;
    struct arena arena;
};
// Prepares a selection. Returns -EINVAL if the filters are invalid. Call export_judge_free in any
// case.
int export_judge_make(struct export_judge *j, const struct export_selection *selection,
                      struct error *e);
void export_judge_free(struct export_judge *j);

bool export_judge_metric(const struct export_judge *j, struct str name);
// Returns the first name in the selection that is not a pattern and that none of these metrics has;
// empty: there is none.
struct str export_judge_unknown(const struct export_judge *j, const struct str *metrics,
                                size_t count);
bool export_judge_labels(const struct export_judge *j, const struct store_label *labels,
                         size_t count);
// An event also has its node as the tag `host`.
bool export_judge_event(const struct export_judge *j, const struct export_event *event);

#endif
