// import_dragon.h - makes recordings from databases of the Dragon Telemetry Service.
//
// Dragon's node servers keep points in SQLite; db_dump() copies their files to dump_dir/telemetry.
//
//   ts_USER_HOST_DATE_TIME.db    datapoints(metric, timestamp, value, tags)
//   ts_USER_HOST.db              the same, from a node server that still runs or was killed
//   offline_ts_USER_HOST.db      datapoints(table_name, …): many nodes, by host
//
// timestamp is a text of seconds, tags are a JSON object or null. Each host becomes one recording
// DIR/HOST.sonde, made from all of its files. If a series has several rows in one second, the last
// one counts, as in Dragon's own answers. Series carry the label `host`; Dragon's names become
// sonde's (load_average is load_1m). base/storable_name.h converts names that are not valid for a
// metric.
#ifndef SONDE_STORE_IMPORT_DRAGON_H
#define SONDE_STORE_IMPORT_DRAGON_H

#include "base/error.h"
#include "store/store.h"

struct import_dragon_recording {
    char path[4096];
    uint64_t files, rows;
    uint64_t values; // number of values in the recording
    uint64_t series;
    uint64_t repeats; // rows that a later row of the same series and time replaced
    uint64_t bad;     // rows that were left out because of an invalid name, time, tags or value
    uint64_t file_bytes;
};

struct import_dragon_options {
    const char *const *paths; // files, and folders of files (or dump_dir itself)
    size_t count;
    const char *folder; // existing folder for the recordings
    const char *host;   // NULL: the host in the name of each file
    // Finds sonde's name of a metric of Dragon; returns false if sonde has none.
    bool (*own_metric)(struct str name, struct store_metric *m);
    // called for each recording
    void (*made)(const struct import_dragon_recording *r, void *user);
    void *user;
};

// Imports the files. With one file, *e has the reason of a failure; with several, each unreadable
// file is skipped completely and gets a warning. Returns 0 if all files are imported, or a negative
// errno; -EEXIST if a recording exists, because it is not replaced.
int import_dragon(const struct import_dragon_options *o, struct error *e);

#endif
