// tracks.h - where spans, annotations and counters stand in a trace: a process for each host, in it
// a thread for each rank (else worker, else program), and its lanes.
//
// Spans of a lane nest: one that overlaps another without lying in it goes to the next lane. What
// is kept grows with hosts, threads and open spans, not with all spans.
#ifndef SONDE_EXPORT_TRACKS_H
#define SONDE_EXPORT_TRACKS_H

#include "base/arena.h"
#include "base/map.h"
#include "export/export.h"

enum { TRACKS_LANES_MAX = 1024 }; // of a thread

struct track_lane {
    uint32_t number;
    int64_t *ends; // of the spans that are open, the innermost last
    size_t open, capacity;
};

struct track_thread {
    uint32_t number, process;
    struct str name; // "rank 3"
    struct track_lane *lanes;
    size_t lane_count, lane_capacity;
};

struct tracks {
    struct map processes, thread_map;
    struct track_thread **threads;
    size_t thread_count, thread_capacity;
    struct arena arena;
    struct buf key;
    uint32_t last; // number: processes, threads, lanes and counters have different ones, from 1 on
};

// A place: the first time that it is named, `new_…` says so.
struct track {
    uint32_t process, thread, lane; // the first lane of a thread has the thread's number
    struct str thread_name;
    bool new_process, new_thread, new_lane;
};

void tracks_free(struct tracks *t);
uint32_t tracks_number(struct tracks *t); // a new one
// 0 or -ENOMEM.
int tracks_process(struct tracks *t, struct str host, struct track *out);
int tracks_thread(struct tracks *t, const struct export_event *event, struct track *out);
// Of a span. -E2BIG: too many lanes.
int tracks_lane(struct tracks *t, const struct export_event *event, struct track *out);

// The value of a label; empty: there is none.
struct str tracks_label(const struct store_label *labels, size_t count, struct str key);
// "metric key=value key=value" without the host.
void tracks_counter_name(struct buf *out, const struct export_series *series);

#endif
