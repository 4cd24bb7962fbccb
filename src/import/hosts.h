// hosts.h - recordings made of single points and events: a file for each host.
//
//   a reader of a format ─▶ import_hosts_point, import_hosts_event ─▶ DIR/HOST.sonde, …
//
// A point belongs to the recording of its tag `host`, or else of the default host. Points wait
// until they fill a block (store/direct.h): at most IMPORT_WAITING_MAX, 24 bytes each. The
// recordings are incomplete until import_hosts_end; if that fails, or after import_hosts_cancel, no
// recording is left.
#ifndef SONDE_IMPORT_HOSTS_H
#define SONDE_IMPORT_HOSTS_H

#include "base/error.h"
#include "store/store.h"

enum {
    IMPORT_HOSTS_MAX = 4096,
    IMPORT_WAITING_MAX = 1 << 20, // waiting points of all recordings
};

struct import_hosts_options {
    const char *folder; // folder of the recordings; it exists
    struct str host;    // default host, of points and events without one
    struct str job;     // job that the recordings name; empty: none
    // Looks up sonde's own metric of this name, for files that lack its unit or its help. Returns
    // false if sonde has none. May be NULL.
    bool (*own_metric)(struct str name, struct store_metric *m);
};

struct import_hosts_recording {
    const char *path;
    uint64_t values, series, events, file_bytes;
};

struct import_hosts;

int import_hosts_begin(const struct import_hosts_options *o, struct import_hosts **out,
                       struct error *e);

// Adds the metric to the default host's recording, even if no points follow.
int import_hosts_metric(struct import_hosts *h, const struct store_metric *metric, struct error *e);

// Adds a point. `key` identifies the series: points with the same key have the same metric and
// labels, which are read only for the first of them. Labels may have any order; without `host` the
// default one is added. Returns 0; -EINVAL if no series can have these names, which the caller
// counts; or another errno with a message in *e.
struct import_hosts_series {
    struct str key;
    struct store_metric metric;
    const struct store_label *labels;
    size_t label_count;
};
int import_hosts_point(struct import_hosts *h, const struct import_hosts_series *series,
                       int64_t t_ns, double value, struct error *e);

// Adds a point in two steps, for many points of one series: find the series' number, then append.
int import_hosts_series_find(struct import_hosts *h, const struct import_hosts_series *series,
                             size_t *number, struct error *e);
int import_hosts_append(struct import_hosts *h, size_t number, const int64_t *t_ns,
                        const double *values, size_t count, struct error *e);

// Returns the series' number of the last import_hosts_point.
size_t import_hosts_last(const struct import_hosts *h);

// Adds an event; `host` empty: the default host.
int import_hosts_event(struct import_hosts *h, struct str host, const struct store_event *event,
                       struct error *e);

// Closes the recordings and calls made() for each. Frees h, whatever happens.
int import_hosts_end(struct import_hosts *h,
                     void (*made)(const struct import_hosts_recording *r, void *user), void *user,
                     struct error *e);
void import_hosts_cancel(struct import_hosts *h); // NULL is allowed

#endif
