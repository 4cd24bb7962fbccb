// copy_sums.h - what a recording holds, slice by slice of time, in so few bytes that one end can
// ask the other whether it holds the same.
//
//   time ─▶            ends[0]      ends[1]                ends[count - 1]
//        ─────────────────┤────────────┤─────── … ────────────────┤─────────────────▶
//   slice       0               1                                       count: what came later
//
// Who asks chooses the ends, such that slices hold about equally many of its points: so what is new
// lies in few slices, however unevenly the points lie in time, and a wrong clock spoils nothing. A
// sum is the sum, modulo 2^64, of the hashes of all points, or events, of a slice: it depends
// neither on their order nor on the blocks in which they lie. A point's hash is of its series (name
// and labels), its time stamp and the bits of its value.
//
// This finds out what differs, by accident or by design of nobody: it is no defence against who can
// write the files.
//
// Arithmetic: a slice takes 17 to 26 bytes of a request, 256 of them at most 6.7 KB. Looking takes
// some 4 ns a point, of which decoding it is 1.6.
#ifndef SONDE_ASK_COPY_SUMS_H
#define SONDE_ASK_COPY_SUMS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "store/read.h"

enum {
    ASK_COPY_SLICES_MAX = 256,
    // on average at least, so that sums stay small beside what they spare
    ASK_COPY_SLICE_POINTS = 256,
    ASK_COPY_LOOK_POINTS = 1 << 19, // looked at in a step: some 2 ms
};

struct ask_copy_sums {
    uint32_t metrics, series; // defined
    uint64_t definitions;     // hash of them, in their order
    uint32_t count;           // slices, beside the last
    int64_t ends[ASK_COPY_SLICES_MAX];
    uint64_t points[ASK_COPY_SLICES_MAX + 1], events[ASK_COPY_SLICES_MAX + 1]; // sums
    uint64_t point_count[ASK_COPY_SLICES_MAX + 1], event_count[ASK_COPY_SLICES_MAX + 1];
};

// Chooses the ends: of at most `slices_max` (≤ ASK_COPY_SLICES_MAX) slices. -ENOMEM, or why the
// file cannot be read.
int ask_copy_sums_divide(struct store_snapshot *store, int64_t from_ns, int64_t to_ns,
                         uint32_t slices_max, struct ask_copy_sums *out);

// Sums up what lies between two times, in steps. Ends and count of `sums` are given; `metrics` and
// `series` say how many of the first definitions count, and are at most those that are there.
// `sums` and the snapshot outlive it.
struct ask_copy_look {
    struct store_snapshot *store;
    int64_t from_ns, to_ns;
    struct ask_copy_sums *sums;
    uint32_t metrics, series, next;
    uint64_t key; // hash of the series in hand
    struct store_cursor *cursor;
    int stage;
};
void ask_copy_look_begin(struct ask_copy_look *l, struct store_snapshot *store, int64_t from_ns,
                         int64_t to_ns, uint32_t metrics, uint32_t series,
                         struct ask_copy_sums *sums);
// 1: there is more to look at; 0: that was all; or a negative errno
int ask_copy_look_step(struct ask_copy_look *l);
void ask_copy_look_end(struct ask_copy_look *l); // at any time

// The slice that a time lies in: the first whose end is not before it.
uint32_t ask_copy_slice(const struct ask_copy_sums *sums, int64_t t_ns);

// On the wire: varint metrics, varint series, u64 definitions, varint slices, of each: its end (the
// first a zigzag varint, the others varint, less the one before), u64 points, u64 events. What came
// later has no sum there: who asks has nothing of it. -EBADMSG.
void ask_copy_sums_write(const struct ask_copy_sums *sums, struct buf *out);
int ask_copy_sums_read(struct str text, struct ask_copy_sums *out);

// Slices that are the same at both ends: bit i mod 8 of byte i / 8.
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
// What both hold. True: that is all that either holds, definitions included.
bool ask_copy_sums_compare(const struct ask_copy_sums *ours, const struct ask_copy_sums *theirs,
                           struct ask_copy_kept *out);

// Stretches of time whose points are kept, or are not: ascending, at most ASK_COPY_STRETCHES_MAX;
// returns how many.
enum { ASK_COPY_STRETCHES_MAX = ASK_COPY_SLICES_MAX / 2 + 1 };
struct ask_copy_stretch {
    int64_t from_ns, to_ns; // both in it
};
size_t ask_copy_stretches(const struct ask_copy_sums *sums, const uint8_t *bits, bool kept,
                          int64_t from_ns, int64_t to_ns,
                          struct ask_copy_stretch out[ASK_COPY_STRETCHES_MAX]);

// ---- hashes ----

static inline uint64_t ask_copy_name_hash(struct str name)
{
    return hash_bytes(name.data, name.size, 0);
}

// Of a series: its metric's name, then keys and values of its labels, which are sorted.
uint64_t ask_copy_series_hash(uint64_t name, const struct store_label *labels, size_t count);
// which is there
uint64_t ask_copy_series_hash_of(const struct store_snapshot *store, uint32_t series);

static inline uint64_t ask_copy_point_hash(uint64_t series, int64_t t_ns, double value)
{
    uint64_t bits, x = series + (uint64_t)t_ns * 0x9e3779b97f4a7c15u;
    memcpy(&bits, &value, sizeof bits);
    x ^= x >> 32;
    return hash_u64(x + bits * 0xd6e8feb86659fd93u);
}

uint64_t ask_copy_event_hash(const struct store_event *event);

#endif
