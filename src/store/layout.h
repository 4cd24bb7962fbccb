// layout.h - every byte of a .sonde file (docs/format.md describes it in prose). Little-endian
// throughout.
//
//   0            512          1024
//   ┌────────────┬────────────┬─────────┬──────────┬─────────┬────── ─ ─
//   │ superblock │ 8 extent  │ extent  │ extent   │ extent  │ …
//   │            │ entries    │ catalog │ set tail │ blocks  │
//   └────────────┴────────────┴─────────┴──────────┴─────────┴────── ─ ─
//
// The extent table lists the extents of the file; bytes outside of all entries are free. The table
// starts after the superblock and moves into an extent of its own when it needs more than 8
// entries. Kinds of extents:
//
//   CATALOG      entries that define metrics, label pairs, series and sets, in order; never retired
//   SET_TAIL     the newest rows of one set, unsorted:      { t, value[columns] } …   used = rows
//   POINT_TAIL   the newest single points of all series:    { series, 0, t, value } … used = points
//   EVENT_TAIL   the newest spans and annotations:          { size, crc, record } …   used = bytes
//   BLOCKS       sealed blocks, back to back                                          used = bytes
//
// Data become visible by one aligned 8-byte store (`used`, `table_sequence`) after the data.
#ifndef SONDE_STORE_LAYOUT_H
#define SONDE_STORE_LAYOUT_H

#include "store/summary.h"

#include <assert.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian and mapped");

#define LAYOUT_MAGIC "sonde\0\r\n"

enum {
    LAYOUT_MAJOR = 2, // a reader refuses another major version
    LAYOUT_MINOR = 2, // and ignores unknown parts of a greater minor one
    LAYOUT_HEADER_BYTES = 1024,
    LAYOUT_INLINE_ENTRIES = 8,
    LAYOUT_ALIGNMENT = 64, // of extents
};

enum { LAYOUT_LIVE = 1, LAYOUT_CLOSED = 2 }; // superblock.state

struct superblock {
    // Written once.
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;
    int64_t created_ns;
    uint8_t file_id[16]; // random
    uint8_t zero0[20];
    uint32_t fixed_crc; // crc32c of the preceding 60 bytes

    // About the writer.
    uint32_t state;
    uint32_t zero1;
    uint64_t writer_pid;
    uint64_t writer_start; // in clock ticks after boot, from /proc/PID/stat
    uint8_t boot_id[16];   // of the machine when the file was last opened for writing
    uint8_t zero2[24];

    // The extent table. `table_sequence` is odd while the table is being changed.
    uint64_t table_sequence;
    uint64_t table_offset;
    uint32_t table_capacity; // room for so many entries
    uint32_t table_count;    // entries ever used: all entries from here on are empty
    uint8_t zero3[40];

    uint64_t version; // grows with every append
    // the greatest time stamp of all points so far; INT64_MIN before the first point
    int64_t newest_ns;
    // Data that are not in the file, counted in values and events. The header holds the counts,
    // because it never lacks space.
    uint64_t dropped; // by the writers and their callers, for any cause
    uint64_t waiting; // in the writer's memory for lack of space; lost when the writer dies
    uint64_t retired; // by retention
    uint8_t zero4[276];
    // In a closed file: crc32c of the preceding 508 bytes and of the table_count entries of the
    // extent table. Otherwise ignored.
    uint32_t closed_crc;
};
static_assert(sizeof(struct superblock) == 512, "superblock");

enum extent_kind {
    EXTENT_EMPTY = 0, // the entry is not in use
    EXTENT_CATALOG,
    EXTENT_SET_TAIL,
    EXTENT_POINT_TAIL,
    EXTENT_EVENT_TAIL,
    EXTENT_BLOCKS,
    EXTENT_CATALOG_PACKED, // a catalog extent under zstd: u64 raw size, then a frame
    EXTENT_KINDS
};

struct extent_entry {
    uint32_t kind;
    // grows whenever the entry gets another extent, or the extent other content
    uint32_t generation;
    uint32_t owner; // SET_TAIL: the set
    // crc32c of kind, generation, owner, offset, size, sequence, in this order; 0 if never used
    uint32_t check;
    uint64_t offset, size;
    // For tails, the number of the block that they will become; for others, their place in the
    // order of creation.
    uint64_t sequence;
    uint64_t used; // published: rows, points or bytes
    // The contents on disk at the last two syncs, in the unit of `used`, and their crc32c (tails
    // only, 0 elsewhere).
    struct extent_synced {
        uint32_t used, crc;
    } synced[2];
};
static_assert(sizeof(struct extent_entry) == 64, "extent entry");
static_assert(sizeof(struct superblock) + LAYOUT_INLINE_ENTRIES * sizeof(struct extent_entry) ==
                  LAYOUT_HEADER_BYTES,
              "header");

struct point_record {
    uint32_t series, zero;
    int64_t t_ns;
    double value;
};
static_assert(sizeof(struct point_record) == 24, "point");

// ---- Blocks ----
//
//   ┌────────┬───────────┬─────────────────────────┐
//   │ header │ directory │ data                    │  size is a multiple of 8
//   └────────┴───────────┴─────────────────────────┘
//
// Numbers: blocks of one owner (a set; all single points; all events) are numbered 1, 2, 3 … as
// their tails were. A merged block carries the range of those it replaces. So of two blocks of an
// owner one of which covers the other's range, only the wider counts; and a tail whose number is
// covered by a block has been sealed already.

#define BLOCK_MAGIC UINT32_C(0x4b4c4253) // "SBLK"

enum block_kind { BLOCK_SET = 1, BLOCK_POINTS = 2, BLOCK_EVENTS = 3 };

enum {
    BLOCK_COLD = 1,           // merged
    BLOCK_ZSTD_DIRECTORY = 2, // the directory is a zstd frame
    BLOCK_ZSTD_DATA = 4,      // the data are a zstd frame
    BLOCK_STRIPED = 8,        // BLOCK_POINTS: the data are whole blocks, the stripes
    BLOCK_STRIPE = 16,        // one of these stripes
};

// A striped block holds long series: a reader of a tenth of their time range reads a tenth of the
// block. It has no directory. Its stripes are cold blocks that ascend in time and do not overlap.
// They carry the numbers of the striped block, which alone decides whether they count; `columns` of
// its header is their number. A header with BLOCK_STRIPE is valid only within a striped block.

struct block_header {
    uint32_t magic;
    uint32_t head_crc; // crc32c of the header after this field
    uint32_t size;     // of the whole block
    uint16_t kind, flags;
    uint32_t owner;
    uint32_t rows;    // BLOCK_SET: rows; otherwise points or events
    uint32_t columns; // BLOCK_SET: columns; BLOCK_POINTS: series
    uint32_t directory_bytes, directory_raw_bytes;
    uint32_t data_bytes, data_raw_bytes;
    uint32_t directory_crc, data_crc; // crc32c of each as stored
    uint32_t zero;
    uint64_t sequence_first, sequence_last;
    int64_t first_ns, last_ns;
    uint64_t values; // number of present values
    // superblock.version when the newest of its data were sealed: of equal time stamps, the point
    // of the block with the greater order wins
    uint64_t order;
};
static_assert(sizeof(struct block_header) == 104, "block header");

// Hot BLOCK_SET, directory: u32 bytes of the time stamps, u32 0, then a column_entry for each
// column. Data: the time stamps, then the columns at their offsets (codec.h). A column with fewer
// values than rows starts with a bitmap of the rows that have one.
struct column_entry {
    uint32_t offset, size; // within the data
    uint32_t count, nans;
    int64_t first_ns, last_ns;
    struct store_summary summary;
};
static_assert(sizeof(struct column_entry) == 80, "column entry");

// Hot BLOCK_POINTS, directory: u32 series[columns], ascending, then u32 offset[columns + 1] into
// the data, where each series has a record. From BLOCK_SUMMARY_MIN points on: a group_head, a
// group_summary, the time stamps, the values (codec.h). Below that number, only the following,
// because a hundred thousand series may have one point each:
//
//   u8 points | width << 3
//   for each point its time less the block's first_ns, in `width` bytes
//   the values, uncompressed
enum { BLOCK_SUMMARY_MIN = 8 };

struct group_head {
    uint32_t zero : 8, count : 24; // in the short form the first byte is not 0
    uint32_t time_bytes;
    int64_t first_ns, last_ns;
};
static_assert(sizeof(struct group_head) == 24, "group head");

struct group_summary {
    uint32_t nans, zero;
    struct store_summary values;
};
static_assert(sizeof(struct group_summary) == 56, "group summary");

// cold.h shows cold blocks (both kinds). BLOCK_EVENTS have no directory; their data are event
// records (event_record.h), under zstd if the flag says so.

#endif
