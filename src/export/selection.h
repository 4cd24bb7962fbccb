// selection.h - which metrics, series and events an export takes.
#ifndef SONDE_EXPORT_SELECTION_H
#define SONDE_EXPORT_SELECTION_H

#include "base/arena.h"
#include "export/export.h"
#include "query/filter.h"

struct export_selection {
    // Names and patterns, separated by commas: "loss,gpu_*"; NULL: all.
    const char *metrics;
    // As in the braces of an expression: "host=n1|n2,rank=*"; NULL: all.
    const char *filters;
    int64_t from_ns, to_ns; // both inclusive
    bool events;
    struct query_downsample downsample; // without a fill policy; not `on`: the points as they are
    struct str span; // values of each span of this name in place of points; empty: none
};

// A selection, ready to judge. Its texts outlive it.
struct export_judge {
    const struct export_selection *selection;
    const struct query_filter *filters;
    struct query_matcher *matchers;
    size_t filter_count, matcher_count;
    struct arena arena;
};
// -EINVAL: the filters are wrong. export_judge_free in any case.
int export_judge_make(struct export_judge *j, const struct export_selection *selection,
                      struct error *e);
void export_judge_free(struct export_judge *j);

bool export_judge_metric(const struct export_judge *j, struct str name);
// The first name in the selection that is no pattern and that no metric of these has; empty: none.
struct str export_judge_unknown(const struct export_judge *j, const struct str *metrics,
                                size_t count);
bool export_judge_labels(const struct export_judge *j, const struct store_label *labels,
                         size_t count);
// Events also have their node as the tag `host`.
bool export_judge_event(const struct export_judge *j, const struct export_event *event);

#endif
