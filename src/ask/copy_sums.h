// copy_sums.h - checksums of a recording, one for each slice of time, so small that two hosts can
// compare their contents.
//
//   time ─▶            ends[0]      ends[1]                ends[count - 1]
//        ─────────────────┤────────────┤─────── … ────────────────┤─────────────────▶
//   slice       0               1                                       count: later points
//
// The host that has a copy chooses the ends such that all slices hold about the same number of
// points of the copy. New points then lie in few slices, even if points are spread unevenly or
// clocks are wrong. Each slice has two sums, modulo 2^64: one of the hashes of its points, one of
// the hashes of its events. So a sum depends neither on the order of points nor on the blocks that
// contain them. The hash of a point covers its series (name and labels), its time stamp and the
// bits of its value.
//
// The sums detect accidental differences. They are no defence against an attacker who can write the
// files.
//
// Arithmetic: a slice takes 17 to 26 bytes of a request, 256 of them at most 6.7 KB. Computing the
// sums takes about 4 ns a point, of which decoding is 1.6.
#ifndef SONDE_ASK_COPY_SUMS_H
#define SONDE_ASK_COPY_SUMS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "store/read.h"

enum {
    ASK_COPY_SLICES_MAX = 256,
    // minimum average of points in a slice: keeps the sums small beside the points that they save
    ASK_COPY_SLICE_POINTS = 256,
    ASK_COPY_LOOK_POINTS = 1 << 19, // number of points that a step reads: about 2 ms
};

struct ask_copy_sums {
    uint32_t metrics, series; // number of definitions
    uint64_t definitions;     // hash of the definitions, in their order
    uint32_t count;           // number of slices, without the last one
    int64_t ends[ASK_COPY_SLICES_MAX];
    uint64_t points[ASK_COPY_SLICES_MAX + 1], events[ASK_COPY_SLICES_MAX + 1]; // sums
    uint64_t point_count[ASK_COPY_SLICES_MAX + 1], event_count[ASK_COPY_SLICES_MAX + 1];
};

// Chooses the ends of at most `slices_max` (≤ ASK_COPY_SLICES_MAX) slices. Returns 0, -ENOMEM, or
// the reason why the file cannot be read.
int ask_copy_sums_divide(struct store_snapshot *store, int64_t from_ns, int64_t to_ns,
                         uint32_t slices_max, struct ask_copy_sums *out);

// Computes the sums of the data between two times, in steps. `sums` contains the ends and their
// count; its `metrics` and `series` are the numbers of definitions to include, at most those of the
// snapshot. `sums` and the snapshot must outlive the computation.
struct ask_copy_look {
    struct store_snapshot *store;
    int64_t from_ns, to_ns;
    struct ask_copy_sums *sums;
    uint32_t metrics, series, next;
    uint64_t key; // hash of the current series
    struct store_cursor *cursor;
    int stage;
};
void ask_copy_look_begin(struct ask_copy_look *l, struct store_snapshot *store, int64_t from_ns,
                         int64_t to_ns, uint32_t metrics, uint32_t series,
                         struct ask_copy_sums *sums);
// Returns 1 if steps remain, 0 after the last one, or a negative errno.
int ask_copy_look_step(struct ask_copy_look *l);
void ask_copy_look_end(struct ask_copy_look *l); // may be called after any step

// Returns the slice of a time: the first one that ends at this time or later.
uint32_t ask_copy_slice(const struct ask_copy_sums *sums, int64_t t_ns);

// Wire format: varint metrics, varint series, u64 definitions, varint slices; for each slice its
// end (the first as a zigzag varint, the others as a varint difference from the previous end), u64
// points, u64 events. The last slice has no sums on the wire, because the copy has no points in it.
// Reading returns -EBADMSG for damaged bytes.
void ask_copy_sums_write(const struct ask_copy_sums *sums, struct buf *out);
int ask_copy_sums_read(struct str text, struct ask_copy_sums *out);

// One bit for each slice, set if the slice is equal in both files: bit i mod 8 of byte i / 8.
struct ask_copy_kept {
    uint8_t points[ASK_COPY_SLICES_MAX / 8], events[ASK_COPY_SLICES_MAX / 8];
};
static inline bool ask_copy_is_kept(const uint8_t *bits, const struct ask_copy_sums *sums,
                                    uint32_t slice)
{
    return slice < sums->count && (bits[slice / 8] >> (slice % 8) & 1);
}
static inline size_t ask_copy_kept_bytes(uint32_t slices)
{
    return (slices + 7) / 8;
}
// Finds the equal slices. Returns true if everything is equal, including the definitions.
bool ask_copy_sums_compare(const struct ask_copy_sums *ours, const struct ask_copy_sums *theirs,
                           struct ask_copy_kept *out);

// Stores the periods of time whose slices are kept, or with `kept` = false those that are not kept:
// ascending, at most ASK_COPY_STRETCHES_MAX. Returns the number of periods.
enum { ASK_COPY_STRETCHES_MAX = ASK_COPY_SLICES_MAX / 2 + 1 };
struct ask_copy_stretch {
    int64_t from_ns, to_ns; // both inclusive
};
size_t ask_copy_stretches(const struct ask_copy_sums *sums, const uint8_t *bits, bool kept,
                          int64_t from_ns, int64_t to_ns,
                          struct ask_copy_stretch out[ASK_COPY_STRETCHES_MAX]);

// ---- hashes ----

static inline uint64_t ask_copy_name_hash(struct str name)
{
    return hash_bytes(name.data, name.size, 0);
}

// Hashes a series: the name of its metric, then the keys and values of its labels, which are
// sorted.
uint64_t ask_copy_series_hash(uint64_t name, const struct store_label *labels, size_t count);
// The series must exist.
uint64_t ask_copy_series_hash_of(const struct store_snapshot *store, uint32_t series);

static inline uint64_t ask_copy_point_hash(uint64_t series, int64_t t_ns, double value)
{
    uint64_t bits, x = series + (uint64_t)t_ns * 0x9e3779b97f4a7c15u;
    memcpy(&bits, &value, sizeof bits);
    x ^= x >> 32;
    return hash_u64(x + bits * 0xd6e8feb86659fd93u);
}

// Returns the sum of the hashes of all points, modulo 2^64.
uint64_t ask_copy_points_hash(uint64_t series, const int64_t *times_ns, const double *values,
                              size_t count);

uint64_t ask_copy_event_hash(const struct store_event *event);

#endif
