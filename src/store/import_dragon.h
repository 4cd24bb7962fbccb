// import_dragon.h - recordings made from databases of the Dragon Telemetry Service.
//
// Dragon's node servers keep points in SQLite; db_dump() copies their files to dump_dir/telemetry.
//
//   ts_USER_HOST_DATE_TIME.db    datapoints(metric, timestamp, value, tags)
//   ts_USER_HOST.db              the same: of a node server that still runs, or was killed
//   offline_ts_USER_HOST.db      datapoints(table_name, …): those of many nodes, by host
//
// timestamp is a text of seconds, tags are a JSON object or null. Each host becomes one recording
// DIR/HOST.sonde, made from all of its files. As in Dragon's own answers, the last row of a series
// and a second counts. Series carry the label `host`; Dragon's names become sonde's (load_average
// is load_1m). A name that no metric can have is stored as base/storable_name.h says.
#ifndef SONDE_STORE_IMPORT_DRAGON_H
#define SONDE_STORE_IMPORT_DRAGON_H

#include "base/error.h"
#include "store/store.h"

struct import_dragon_recording {
    char path[4096];
    uint64_t files, rows;
    uint64_t values; // in the recording
    uint64_t series;
    uint64_t repeats; // rows that a later one of the same series and time replaces
    uint64_t bad;     // rows that are left out: name, time, tags or value make no sense
    uint64_t file_bytes;
};

struct import_dragon_options {
    const char *const *paths; // files, and folders of them (or dump_dir itself)
    size_t count;
    const char *folder; // of the recordings; exists
    const char *host;   // NULL: as the names of the files say
    // The name in sonde of a metric of Dragon; false: there is none.
    bool (*own_metric)(struct str name, struct store_metric *m);
    void (*made)(const struct import_dragon_recording *r); // called for each recording
};

// A file that cannot be read is skipped completely. *e says why if there was only one file; of
// several files, each gets a warning. 0: all files are imported. A recording that exists is not
// replaced: -EEXIST.
int import_dragon(const struct import_dragon_options *o, struct error *e);

#endif
