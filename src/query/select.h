// select.h - selects the series of a query and divides them into groups for aggregation.
//
// A series (a metric and its labels) may lie in several stores: these parts are one series. The
// result is an array ordered by group, and within a group by labels; a group's key is the same
// bytes for the same group on every node.
#ifndef SONDE_QUERY_SELECT_H
#define SONDE_QUERY_SELECT_H

#include "query/context.h"
#include "query/labels.h"

struct query_part {
    struct store_snapshot *store;
    uint32_t series;
    // In the order of the stores. Singly linked, because parts are never removed, and there are
    // millions.
    struct query_part *next;
};

struct query_selected {
    const struct store_label *labels; // sorted by key
    size_t label_count;
    struct query_part part;
    struct query_part *last_part;
    uint32_t group;
};

struct query_group {
    struct str key;
    const struct query_selected *series;
    size_t count;
};

struct query_selection {
    struct query_group *groups; // only groups with series
    size_t count;
    const struct query_selected *series; // of all groups, one after the other
    size_t series_count;
};

// Returns -ENOENT if no store knows the metric.
int query_select(struct query_context *c, struct store_snapshot *const *stores, size_t store_count,
                 struct query_selection *out);

#endif
