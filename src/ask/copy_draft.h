// copy_draft.h - a copy that is being written: a store under another name than its own, and what it
// holds so far in numbers, which are compared in the end with what the node says that it should
// hold.
//
//   records of the node ──┐
//                         ├─▶ HOST.RANDOM.part ── as many points and events as there, and the same sums ─▶ HOST.sonde
//   the copy from before ─┘
#ifndef SONDE_ASK_COPY_DRAFT_H
#define SONDE_ASK_COPY_DRAFT_H

#include "ask/copy_sums.h"
#include "ask/copy_wire.h"

// Zero-initialised holds nothing. The store is the caller's to open, close or abandon.
struct ask_copy_draft {
    struct store *store;
    struct ask_copy_name *metrics, *series; // in the order in which they came
    size_t metric_count, metric_capacity, series_count, series_capacity;
    uint64_t points, events;       // in it
    uint64_t point_sum, event_sum; // of them (copy_sums.h)
};
struct ask_copy_name {
    uint32_t id; // ours
    uint64_t hash;
};

void ask_copy_draft_free(struct ask_copy_draft *d);

// The next metric, or series of the metric that came so many-th; points of the series that came so
// many-th, ascending. 0; -EBADMSG: there is no such metric or series; -ENOMEM; or why it cannot be
// written.
int ask_copy_draft_metric(struct ask_copy_draft *d, const struct store_metric *m);
int ask_copy_draft_series(struct ask_copy_draft *d, uint64_t metric,
                          const struct store_label *labels, size_t count);
int ask_copy_draft_points(struct ask_copy_draft *d, uint64_t series, const int64_t *times,
                          const double *values, size_t count);
int ask_copy_draft_event(struct ask_copy_draft *d, const struct store_event *event);

// Who may end what takes long.
struct ask_copy_stop {
    const atomic_bool *cancel;          // may be NULL
    const struct work_watch *watch;     // may be NULL
    struct ask_copy_progress *progress; // may be NULL
};
// Counts a step. 0: go on; -ECANCELED, or what the watch returned, in words.
int ask_copy_stopped(const struct ask_copy_stop *stop, struct error *e);

// Takes over what is kept of the copy at `path`: the definitions that `sums` counts, then points
// and events of the slices that are kept and lie between the two times. Nothing may have been
// written before. -ESTALE: the file is not the one any more that was summed up; -ENOMEM; what the
// stop says; or why it cannot be written.
int ask_copy_draft_keep(struct ask_copy_draft *d, const char *path,
                        const struct ask_copy_sums *sums, const struct ask_copy_kept *kept,
                        int64_t from_ns, int64_t to_ns, const struct ask_copy_stop *stop,
                        struct error *e);

#endif
