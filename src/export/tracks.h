// tracks.h - places spans, annotations and counters in a trace. A host is a process, each rank
// (else worker, else program) is a thread in it, and each thread has lanes.
//
// The spans of a lane nest. If a span overlaps another one without lying in it, it goes to the next
// lane. Memory grows with hosts, threads and open spans, but not with the number of spans.
#ifndef SONDE_EXPORT_TRACKS_H
#define SONDE_EXPORT_TRACKS_H

#include "base/arena.h"
#include "base/map.h"
#include "export/export.h"

enum { TRACKS_LANES_MAX = 1024 }; // lanes of a thread

struct track_lane {
    uint32_t number;
    int64_t *ends; // ends of the open spans, the innermost last
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
    // last assigned number; processes, threads, lanes and counters all have different numbers, from
    // 1 on
    uint32_t last;
};

// A place. `new_…` is true if it is returned for the first time.
struct track {
    uint32_t process, thread, lane; // the first lane of a thread has the same number as the thread
    struct str thread_name;
    bool new_process, new_thread, new_lane;
};

void tracks_free(struct tracks *t);
uint32_t tracks_number(struct tracks *t); // returns a new number
// 0 or -ENOMEM.
int tracks_process(struct tracks *t, struct str host, struct track *out);
int tracks_thread(struct tracks *t, const struct export_event *event, struct track *out);
// Finds the lane for a span. Returns 0, -ENOMEM or -E2BIG (too many lanes).
int tracks_lane(struct tracks *t, const struct export_event *event, struct track *out);

// Returns the value of a label, or an empty text if it is absent.
struct str tracks_label(const struct store_label *labels, size_t count, struct str key);
// Appends "metric key=value key=value", without the host.
void tracks_counter_name(struct buf *out, const struct export_series *series);

#endif
