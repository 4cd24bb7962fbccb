// labels.h - the labels of series: their order, the label that a store adds to all its series, the
// test whether a series carries some tags, and the few series that can carry them.
#ifndef SONDE_QUERY_LABELS_H
#define SONDE_QUERY_LABELS_H

#include "store/read.h"

enum { QUERY_LABELS_MAX = STORE_LABELS_MAX + 1 }; // of a series: its own and its store's label

// Order by labels: keys first, then values.
int query_labels_compare(const struct store_label *a, size_t a_count, const struct store_label *b,
                         size_t b_count);

// The value of that key; NULL if the series lacks it.
const struct str *query_labels_get(const struct store_series_info *s, struct str key);

// Whether to add `more`, a label of all series of the store (NULL or an empty key: no label). A
// series' own label of that key has precedence.
bool query_labels_lack(const struct store_series_info *s, const struct store_label *more);

// Adds `more` in its place. `room` has space for s->label_count + 1 labels and must outlive `s`.
void query_labels_add(struct store_series_info *s, const struct store_label *more,
                      struct store_label *room);

// Whether the labels contain all `tags`; the value "*" matches any value.
bool query_labels_carry(const struct store_series_info *s, const struct store_label *tags,
                        size_t count);

// A list of the store's index is used if it is this many times shorter than the list of the series
// to examine, because a walk over those goes through the memory in order.
enum { QUERY_INDEX_GAIN = 4 };

// Finds the shortest list of series that carry one of the tags, if it is QUERY_INDEX_GAIN times
// shorter than `among` series; else returns false. Each series that carries all tags is in it.
// `more`, as above, is not in the index. The ids are ascending and valid as long as the snapshot.
bool query_labels_narrow(const struct store_snapshot *store, const struct store_label *tags,
                         size_t count, const struct store_label *more, size_t among,
                         const uint32_t **ids, size_t *id_count);

#endif
