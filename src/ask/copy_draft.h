// copy_draft.h - an unfinished copy: a store under a temporary name, with counts and sums of its
// contents. At the end, the receiver compares them with the counts and sums that the node sent.
//
//   records of the node ──┐
//                         ├─▶ HOST.RANDOM.part ── the same counts and sums ─▶ HOST.sonde
//   the older copy ───────┘
#ifndef SONDE_ASK_COPY_DRAFT_H
#define SONDE_ASK_COPY_DRAFT_H

#include "ask/copy_sums.h"
#include "ask/copy_wire.h"

// A zero-initialised draft is empty. The caller opens the store, and closes or abandons it.
struct ask_copy_draft {
    struct store *store;
    struct ask_copy_name *metrics, *series; // in the order of their arrival
    size_t metric_count, metric_capacity, series_count, series_capacity;
    uint64_t points, events;       // number of points and events in the draft
    uint64_t point_sum, event_sum; // sums of these points and events (copy_sums.h)
};
struct ask_copy_name {
    uint32_t id; // number of the metric or series in the draft
    uint64_t hash;
};

void ask_copy_draft_free(struct ask_copy_draft *d);

// Three functions append to the draft: the next metric; the next series of the metric with this
// index; ascending points of the series with this index. Indices count from 0 in the order of
// arrival. Each function returns 0, -EBADMSG (no such metric or series), -ENOMEM, or the reason why
// the store cannot be written.
int ask_copy_draft_metric(struct ask_copy_draft *d, const struct store_metric *m);
int ask_copy_draft_series(struct ask_copy_draft *d, uint64_t metric,
                          const struct store_label *labels, size_t count);
int ask_copy_draft_points(struct ask_copy_draft *d, uint64_t series, const int64_t *times,
                          const double *values, size_t count);
int ask_copy_draft_event(struct ask_copy_draft *d, const struct store_event *event);

// Lets a caller cancel a long operation, and follow its progress.
struct ask_copy_stop {
    const atomic_bool *cancel;          // may be NULL
    const struct work_watch *watch;     // may be NULL
    struct ask_copy_progress *progress; // may be NULL
};
// Counts a step. Returns 0 if the work continues; otherwise -ECANCELED or the watch's result, with
// a message.
int ask_copy_stopped(const struct ask_copy_stop *stop, struct error *e);

// Copies the kept part of the older copy at `path` into the draft: the definitions that `sums`
// counts, then points and events of the kept slices between the two times. The draft must be empty.
// Returns -ESTALE if the file is no longer the one that was summed, -ENOMEM, the result of
// ask_copy_stopped, or the reason why the draft cannot be written.
int ask_copy_draft_keep(struct ask_copy_draft *d, const char *path,
                        const struct ask_copy_sums *sums, const struct ask_copy_kept *kept,
                        int64_t from_ns, int64_t to_ns, const struct ask_copy_stop *stop,
                        struct error *e);

#endif
