// hosts.h - recordings made of single points and events: a file for each host.
//
//   a reader of a format ─▶ import_hosts_point, import_hosts_event ─▶ DIR/HOST.sonde, …
//
// A point goes to the recording of its tag `host`, or else of the default host, as soon as a block
// of them is full (store/direct.h). At most IMPORT_WAITING_MAX points wait, 24 bytes each. Until
// import_hosts_end the recordings are not complete; if that fails, or import_hosts_cancel is
// called, none of them is left.
#ifndef SONDE_IMPORT_HOSTS_H
#define SONDE_IMPORT_HOSTS_H

#include "base/error.h"
#include "store/store.h"

enum {
    IMPORT_HOSTS_MAX = 4096,
    IMPORT_WAITING_MAX = 1 << 20, // points of all recordings
};

struct import_hosts_options {
    const char *folder; // of the recordings; exists
    struct str host;    // of points and events without one
    struct str job;     // that the recordings name; empty: none
    // What sonde itself knows of a metric of this name, for files that do not have its unit or its
    // help. False: nothing. May be NULL.
    bool (*own_metric)(struct str name, struct store_metric *m);
};

struct import_hosts_recording {
    const char *path;
    uint64_t values, series, events, file_bytes;
};

struct import_hosts;

int import_hosts_begin(const struct import_hosts_options *o, struct import_hosts **out,
                       struct error *e);

// The recording of the default host has the metric, also without points.
int import_hosts_metric(struct import_hosts *h, const struct store_metric *metric, struct error *e);

// `key` names the series: points with one key have one metric and the same labels, which are read
// only for the first of them. Labels may have any order; without `host` the default one is added.
// 0; -EINVAL: no series can be called so, the caller counts; or another errno with words in *e.
struct import_hosts_series {
    struct str key;
    struct store_metric metric;
    const struct store_label *labels;
    size_t label_count;
};
int import_hosts_point(struct import_hosts *h, const struct import_hosts_series *series,
                       int64_t t_ns, double value, struct error *e);

// The same in two steps, for many points of a series: its number, and a point.
int import_hosts_series_find(struct import_hosts *h, const struct import_hosts_series *series,
                             size_t *number, struct error *e);
int import_hosts_append(struct import_hosts *h, size_t number, int64_t t_ns, double value,
                        struct error *e);

// The number of the series of the last import_hosts_point.
size_t import_hosts_last(const struct import_hosts *h);

// Likewise; `host` empty: the default one.
int import_hosts_event(struct import_hosts *h, struct str host, const struct store_event *event,
                       struct error *e);

// Closes the recordings and calls made() for each. Frees h, whatever happens.
int import_hosts_end(struct import_hosts *h,
                     void (*made)(const struct import_hosts_recording *r, void *user), void *user,
                     struct error *e);
void import_hosts_cancel(struct import_hosts *h); // NULL is fine

#endif
