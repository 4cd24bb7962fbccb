// layout.h - every byte of a .sonde file (docs/format.md describes it in prose). All numbers are
// little-endian.
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
// Data become visible with one aligned 8-byte store (`used`, `table_sequence`) after they are
// written.
#ifndef SONDE_STORE_LAYOUT_H
#define SONDE_STORE_LAYOUT_H

#include "store/summary.h"

#include <assert.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian and mapped");

#define LAYOUT_MAGIC "sonde\0\r\n"

enum {
    LAYOUT_MAJOR = 2, // a reader refuses a file with another major version
    LAYOUT_MINOR = 3, // a reader ignores unknown parts of a greater minor version
    LAYOUT_HEADER_BYTES = 1024,
    LAYOUT_INLINE_ENTRIES = 8,
    // A new file has a table of its own behind the header, with room for all extents that its size
    // limit allows, because the writer waits for two syncs when a table moves. At least it fills
    // the header's page.
    LAYOUT_NEW_ENTRIES_MIN = 48,
    LAYOUT_NEW_ENTRIES_MAX = 2032,
    LAYOUT_NEW_BYTES_MIN = 4096, // header and table
    LAYOUT_NEW_BYTES_MAX = 128 << 10,
    LAYOUT_ALIGNMENT = 64, // alignment of extents
};

enum { LAYOUT_LIVE = 1, LAYOUT_CLOSED = 2 }; // values of superblock.state

struct superblock {
    // These are written once.
    uint8_t magic[8];
    uint16_t major, minor;
    uint32_t header_bytes;
    int64_t created_ns;
    uint8_t file_id[16]; // random
    uint8_t zero0[20];
    uint32_t fixed_crc; // crc32c of the preceding 60 bytes

    // These describe the writer.
    uint32_t state;
    uint32_t zero1;
    uint64_t writer_pid;
    uint64_t writer_start; // in clock ticks after boot, from /proc/PID/stat
    uint8_t boot_id[16];   // of the machine when the file was last opened for writing
    uint8_t zero2[24];

    // These describe the extent table. `table_sequence` is odd while the table is being changed.
    uint64_t table_sequence;
    uint64_t table_offset;
    uint32_t table_capacity; // number of entries that the table has room for
    uint32_t table_count;    // number of entries that were ever used; later entries are empty
    uint8_t zero3[40];

    uint64_t version; // increases with every append
    // the greatest time stamp of all points so far; INT64_MIN before the first point
    int64_t newest_ns;
    // Counts of values and events that are not in the file. They are in the header, whose space is
    // always reserved.
    uint64_t dropped; // dropped by the writers and their callers, for any cause
    uint64_t waiting; // in the writer's memory for lack of disk space; lost if the writer dies
    uint64_t retired; // deleted by retention
    uint8_t zero4[276];
    // In a closed file: crc32c of the preceding 508 bytes and of the table_count entries of the
    // extent table. Otherwise ignored.
    uint32_t closed_crc;
};
static_assert(sizeof(struct superblock) == 512, "superblock");

enum extent_kind {
    EXTENT_EMPTY = 0, // the entry is unused
    EXTENT_CATALOG,
    EXTENT_SET_TAIL,
    EXTENT_POINT_TAIL,
    EXTENT_EVENT_TAIL,
    EXTENT_BLOCKS,
    EXTENT_CATALOG_PACKED, // a catalog extent, compressed with zstd: u64 raw size, then a frame
    EXTENT_KINDS
};

struct extent_entry {
    uint32_t kind;
    // increases whenever the entry gets another extent, or the extent gets other content
    uint32_t generation;
    uint32_t owner; // in a SET_TAIL: the id of the set
    // crc32c of kind, generation, owner, offset, size, sequence, in this order; 0 if never used
    uint32_t check;
    uint64_t offset, size;
    // In a tail, the number of the block that the writer will make of it. In any other extent, a
    // number that grows in the order of creation.
    uint64_t sequence;
    uint64_t used; // number of published rows, points or bytes
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
static_assert(LAYOUT_HEADER_BYTES + LAYOUT_NEW_ENTRIES_MIN * sizeof(struct extent_entry) ==
                      LAYOUT_NEW_BYTES_MIN &&
                  LAYOUT_HEADER_BYTES + LAYOUT_NEW_ENTRIES_MAX * sizeof(struct extent_entry) ==
                      LAYOUT_NEW_BYTES_MAX,
              "new file");

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
// Numbers: the blocks of one owner (a set; all single points; all events) have the numbers 1, 2, 3
// … of the tails that they were made of. A merged block has the range of numbers of the blocks that
// it replaces. So if the range of one block covers that of another block of the same owner, only
// the wider block counts. If a block covers the number of a tail, the tail has been sealed already.

#define BLOCK_MAGIC UINT32_C(0x4b4c4253) // "SBLK"

enum block_kind { BLOCK_SET = 1, BLOCK_POINTS = 2, BLOCK_EVENTS = 3 };

enum {
    BLOCK_COLD = 1,           // a merged block
    BLOCK_ZSTD_DIRECTORY = 2, // the directory is a zstd frame
    BLOCK_ZSTD_DATA = 4,      // the data are a zstd frame
    BLOCK_STRIPED = 8,        // only in BLOCK_POINTS: the data are complete blocks, the stripes
    BLOCK_STRIPE = 16,        // the block is one of these stripes
    BLOCK_ONE_EACH = 32,      // only in a hot BLOCK_POINTS: each series has one point
};

// A striped block holds long series, so that a reader of a tenth of their time range reads only a
// tenth of the block. It has no directory; its data are its stripes. Stripes are cold blocks that
// ascend in time and do not overlap. They have the numbers of the striped block, and whether they
// count is decided by the striped block alone; `columns` in its header is the number of stripes. A
// header with BLOCK_STRIPE is valid only within a striped block.

struct block_header {
    uint32_t magic;
    uint32_t head_crc; // crc32c of the header after this field
    uint32_t size;     // of the whole block
    uint16_t kind, flags;
    uint32_t owner;
    uint32_t rows;    // number of rows in a BLOCK_SET; otherwise number of points or events
    uint32_t columns; // number of columns in a BLOCK_SET, or of series in a BLOCK_POINTS
    uint32_t directory_bytes, directory_raw_bytes;
    uint32_t data_bytes, data_raw_bytes;
    uint32_t directory_crc, data_crc; // crc32c of the stored bytes of each
    uint32_t zero;
    uint64_t sequence_first, sequence_last;
    int64_t first_ns, last_ns;
    uint64_t values; // number of present values
    // superblock.version when the newest of its data were sealed: of equal time stamps, the point
    // of the block with the greater order wins
    uint64_t order;
};
static_assert(sizeof(struct block_header) == 104, "block header");

// Directory of a hot BLOCK_SET: u32 bytes of the time stamps, u32 0, then a column_entry for each
// column. Data: the time stamps, then the columns at their offsets (codec.h). If a column has fewer
// values than rows, it begins with a bitmap of the rows that have a value.
struct column_entry {
    uint32_t offset, size; // within the data
    uint32_t count, nans;
    int64_t first_ns, last_ns;
    struct store_summary summary;
};
static_assert(sizeof(struct column_entry) == 80, "column entry");

// Directory of a hot BLOCK_POINTS: u32 series[columns], ascending, then u32 offset[columns + 1]
// into the data. Each series has a record in the data. With BLOCK_SUMMARY_MIN points or more, a
// record is a group_head, a group_summary, the time stamps, and the values (codec.h). With fewer
// points it has a short form, because a tail of many series has few points of each:
//
//   u8 points | width << 3
//   for each point its time less the block's first_ns, in `width` bytes
//   the values, uncompressed
enum { BLOCK_SUMMARY_MIN = 8 };

struct group_head {
    uint32_t zero : 8, count : 24; // zero: a record of the short form begins with another byte
    uint32_t time_bytes;
    int64_t first_ns, last_ns;
};
static_assert(sizeof(struct group_head) == 24, "group head");

struct group_summary {
    uint32_t nans, zero;
    struct store_summary values;
};
static_assert(sizeof(struct group_summary) == 56, "group summary");

// With BLOCK_ONE_EACH, the directory of a hot BLOCK_POINTS is an array of stretches. The data are
// the points in the order of their series: the time less the block's first_ns, in as many bytes as
// the block's range of time needs, and the value. A stretch is for STRETCH_SERIES series with
// neighbouring ids, of which the block has at least one.
enum { STRETCH_SERIES = 256 };

struct series_stretch {
    uint32_t number;                     // series / STRETCH_SERIES; ascending
    uint32_t before;                     // number of points in earlier stretches
    uint64_t there[STRETCH_SERIES / 64]; // bit i % 64 of word i / 64: series % STRETCH_SERIES = i
};
static_assert(sizeof(struct series_stretch) == 40, "series stretch");

// cold.h describes cold blocks of both kinds. BLOCK_EVENTS have no directory; their data are event
// records (event_record.h), compressed with zstd if the flag is set.

#endif
