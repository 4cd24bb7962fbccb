// inspect.h - reports the contents of a recording and verifies them.
#ifndef SONDE_STORE_INSPECT_H
#define SONDE_STORE_INSPECT_H

#include "store/codec.h"
#include "store/read.h"

struct store_inspection {
    uint64_t file_bytes, disk_bytes; // length; space on disk (holes take none)
    uint16_t major, minor;
    enum store_state state;
    uint64_t metrics, series, sets, events;
    uint64_t values, live_values; // number of all values; number of values in tails
    uint64_t blocks, cold_blocks; // number of intact blocks
    uint64_t block_bytes;         // bytes of the intact blocks
    uint64_t catalog_bytes;
    int64_t first_ns, last_ns; // 0, 0 if the file has no points
    // By the codec of a column's values. Cold blocks are compressed as a whole: their bytes are
    // divided evenly among the values that are not constant.
    struct {
        uint64_t columns, values, bytes;
    } codecs[CODEC_COUNT];
    // bytes of time stamps; bytes of headers and directories of blocks
    uint64_t time_bytes, directory_bytes;
    struct store_damage damage;
};

// Reads everything and checks every checksum. Returns 0, or a negative errno with a message if the
// file cannot be opened. Damage is not a failure; out->damage counts it.
int store_inspect(const char *path, struct store_inspection *out, struct error *e);

#endif
