// segment.h - the memory that a program shares with the agent of its node, byte by byte.
//
// Each process has two memfds, both sealed against a change of their size. Both sides map each
// memfd completely, from offset 0. Another offset would have to be a multiple of the page size,
// which is 64 KiB on some machines.
//
// The segment, "sonde": only the program can write it. The program seals it against every later
// mapping for writing (F_SEAL_FUTURE_WRITE); before Linux 5.1 it passes a read-only descriptor
// instead, and the file's mode keeps other users from opening it again. All data that the program
// relies on are in the segment: heads, limits, masks, sizes. The kernel allocates pages on first
// access, so the sizes below are address space, not memory. src/emit writes the segment. src/ingest
// reads it, and checks all of its contents.
//
//    0 ┌─────────────────────────────┐
//      │ header             64 KiB   │ struct segment_header: fixed, except some numbers that grow
//      ├─────────────────────────────┤
//      │ definitions        64 MiB   │ meaning of the handles; append-only
//      ├─────────────────────────────┤
//      │ gauge cells         1 MiB   │ a word a handle: double XOR SEGMENT_MISSING_BITS, 0: unset
//      ├─────────────────────────────┤
//      │ common counter cells 1 MiB  │ a double a handle; threads without a slot add atomically
//      ├─────────────────────────────┤
//      │ slot 0                      │ one a thread
//      │  ├ struct ring      4 KiB   │ head, limit, drops
//      │  ├ counter cells    1 MiB   │ a double a handle; this thread adds, the agent sums slots
//      │  └ data        ring_bytes   │ records
//      ├─────────────────────────────┤
//      │ slot 1 …                    │
//      └─────────────────────────────┘
//
// The agent's area, "sonde-agent": the agent writes it, and any process that gets its descriptor
// can write it, too. The program treats its contents as a hint: a wrong tail costs points, but the
// program never writes outside of the ring.
//
//    0 ┌─────────────────────────────┐
//      │ struct segment_agent 64 KiB │ tails, conversion; the program reserves what is used of it
//      ├─────────────────────────────┤
//      │ accounts             6 MiB  │ a struct segment_account a handle; the agent reserves it
//      └─────────────────────────────┘
//
// Definitions. Handles count from 1 in the order of the definitions; definition 0 describes the
// process itself. Each definition starts at a multiple of 8. The program writes it completely
// before it raises `definitions_bytes` beyond its end (release):
//
//    u32 size (all of it, with padding; a multiple of 8)   u8 kind   u8 level   u8 what   u8 tags
//    what = SEGMENT_PROCESS, SEGMENT_METRIC:
//        u16 size, name;  `tags` times (u16 size, key; u16 size, value);  u16 size, unit;
//        u16 size, help
//    what = SEGMENT_GROUP:
//        u32 count;  u32 handles[count]     (0 = a metric that is off: its values are skipped)
//
// Records. The ring data are a stream of 64-bit words. `head` and the tail count bytes since the
// ring was made; the byte at a position is data[position % ring_bytes]. No record wraps around the
// end of the ring: if the rest is too short, a pad fills it.
//
//    63                        32 31            16 15     8 7      0
//    ┌───────────────────────────┬────────────────┬────────┬────────┐
//    │ handle                    │ words, this one│ flags  │ type   │
//    └───────────────────────────┴────────────────┴────────┴────────┘
//    POINT       time, double
//    ROW         time, double × members of the group
//    SPAN_BEGIN, SPAN_END, NOTE
//                start, end, id, parent, text
//                (times; SPAN_BEGIN: end 0; NOTE: end = start, id = parent = 0)
//                text = u16 size, name;  u16 tags;  tags × (u16 size, key; u16 size, value);
//                       zeros to the next multiple of 8
//                Both records of a span contain all its data, so one of them is enough.
//    PAD         anything
//    header.clock is the clock of all times; with SEGMENT_TIME_NS in flags a time is ns since the
//    epoch, given by the caller; with SEGMENT_END_NS only the end is.
//
// HELLO, program → agent, the first message on a connection to the agent's Unix socket
// (SOCK_STREAM): struct segment_hello in one sendmsg with two descriptors (SCM_RIGHTS): the
// segment's, then the agent's area's. The program sends it only to a listener of its own user. No
// text protocol begins with its first byte. Every later byte is a doorbell, which the program sends
// when a ring is filling up and the agent has set `asleep`. The agent sends nothing back. An agent
// of another version closes the connection.
#ifndef SONDE_EMIT_SEGMENT_H
#define SONDE_EMIT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_MAGIC UINT64_C(0x67657365646e6f73)       // "sondeseg"
#define SEGMENT_HELLO_MAGIC UINT64_C(0x0a1a65646e6f737f) // "\x7fsonde\x1a\n"
// The advice for a program, or for sonde put, that cannot see the folder of the job.
#define SEGMENT_FOLDER_HINT                                                                \
    "In a container, bind the folder above it (apptainer --bind DIR, podman or docker -v " \
    "DIR:DIR); where TMPDIR is "                                                           \
    "private, give sonde run a --run-dir that both see"

#define SEGMENT_NAME "sonde"
#define SEGMENT_AGENT_NAME "sonde-agent"
#define SEGMENT_LINK "/memfd:sonde (deleted)" // link of the memfd in /proc/PID/fd
#define SEGMENT_AGENT_LINK "/memfd:sonde-agent (deleted)"

// The bits of the double that stands for a missing value: SONDE_MISSING_BITS for programs,
// STORE_MISSING_BITS for the agent.
#define SEGMENT_MISSING_BITS UINT64_C(0x7ff8736f6e646500)

enum {
    SEGMENT_VERSION = 3,
    SEGMENT_PAGE = 4096,
    SEGMENT_PAGE_MAX = 65536, // the largest page size of the supported machines
    SEGMENT_LINE = 64,        // bytes of a cache line
    SEGMENT_PATH_MAX = 108,   // a Unix socket's path with its NUL
    SEGMENT_DEFINITIONS_MAX = 131072,
    SEGMENT_DEFINITIONS_BYTES = 64 << 20,
    SEGMENT_SLOTS_MIN = 4,
    SEGMENT_SLOTS_MAX = 512,
    SEGMENT_RING_MIN = 128 << 10,
    SEGMENT_RING_MAX = 64 << 20,
    SEGMENT_RING_DEFAULT = 1 << 20,
    SEGMENT_RECORD_WORDS_MAX = 8191, // just under 64 KiB, half the size of the smallest ring
    SEGMENT_GROUP_MAX = 4096,        // members of a group; equals the store's limit of a set
    SEGMENT_TAGS_MAX = 16,
    SEGMENT_NAME_MAX = 255,
    SEGMENT_UNIT_MAX = 32,
    SEGMENT_KEY_MAX = 128,
    SEGMENT_VALUE_MAX = 1024,
    SEGMENT_CONVERSION_WORDS = 16,
    SEGMENT_TEXT_MAX = 4096, // bytes of an annotation or a help text
};

enum segment_clock { SEGMENT_CLOCK_REALTIME = 0, SEGMENT_CLOCK_TICKS = 1 };

enum segment_what { SEGMENT_PROCESS = 1, SEGMENT_METRIC = 2, SEGMENT_GROUP = 3 };

enum segment_type {
    SEGMENT_PAD = 1,
    SEGMENT_POINT = 2,
    SEGMENT_ROW = 3,
    SEGMENT_SPAN_BEGIN = 4,
    SEGMENT_SPAN_END = 5,
    SEGMENT_NOTE = 6,
};

enum { SEGMENT_TIME_NS = 1, SEGMENT_END_NS = 2 }; // flags

enum { SEGMENT_EVENT_WORDS = 5 }; // words of a span or a note before its text

struct segment_header {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    // start of the process, field 22 of /proc/PID/stat. A pid may be reused, but pid and start are
    // unique together
    uint64_t start_ticks;
    uint64_t bytes;      // size of the segment, as computed by segment_layout()
    uint64_t ring_bytes; // a power of two
    uint32_t slots;
    uint32_t level;
    uint32_t clock;
    // number of times that the program has changed its agent; raised after each change of
    // socket_path
    _Atomic uint32_t moves;
    // socket of the agent that the program connects to. All versions have the same layout up to
    // here
    char socket_path[SEGMENT_PATH_MAX];
    // inode of the agent's area, for an agent that searches /proc/PID/fd
    uint64_t agent_inode;

    // The program writes these while it runs, and the agent reads them.
    _Alignas(SEGMENT_LINE) _Atomic uint64_t definitions_bytes; // published with release
    // slots from here on were never used
    _Atomic uint32_t slots_used;
    // definitions and tags that were over a limit or had a bad name
    _Atomic uint64_t refused;
    // values lost outside of the rings: values of threads without a slot, and values that are not
    // numbers
    _Atomic uint64_t dropped;
    _Atomic uint32_t common_end; // handles from here on were never used in the common cells
};

struct segment_agent {
    // 1: the agent sleeps. The program that changes it to 0 sends a doorbell, so each sleep gets
    // only one doorbell.
    _Alignas(SEGMENT_LINE) _Atomic uint32_t asleep;
    // number of agents that have attached this segment so far; 0: the data may never be read
    _Atomic uint32_t attached;
    // The counts of drops that agents have read so far (the header's counts, ring.dropped). The
    // next agent continues from them.
    _Atomic uint64_t dropped, refused;
    // The next members are about the accounts below. A stamp is a boot time in ns. Each sample has
    // a later stamp than the sample before.

    // identifies the agents of one job: accounts with another number do not count
    _Atomic uint64_t recording;
    _Atomic uint64_t since; // stamps before this one belong to other agents
    // stamps up to this one are of complete samples: their accounts were written in all programs
    _Atomic uint64_t complete;
    // The conversion from the times of the records between a ring's `bytes` and `claimed` to the
    // times in the store (ingest/conversion.h). The next agent repeats it. So a record that is
    // stored twice gets the same time twice, and counts once.
    _Alignas(SEGMENT_LINE) _Atomic uint64_t conversion[SEGMENT_CONVERSION_WORDS];
    struct {
        _Alignas(SEGMENT_LINE) _Atomic uint64_t bytes; // position up to which the agent has read
        _Atomic uint64_t dropped;
        // if the agent was killed, it was storing records up to this position
        _Atomic uint64_t claimed;
        struct {
            // two entries; the valid one has the same `bytes` as above
            _Atomic uint64_t bytes;
            _Atomic uint64_t newest; // newest time of the points before `bytes`
        } newest[2];
    } tails[];
};

// The part of a counter cell of this program that is in the total of its series. The next agent
// subtracts it from the total; the rest was added by ended programs. The agent writes the older of
// two entries before it records the total. If the agent is killed meanwhile, the other entry is
// still valid.
struct segment_account {
    struct {
        // 0: the entry is empty; published with release after value and total
        _Atomic uint64_t stamp;
        _Atomic uint64_t value; // value of the cell, as bits of a double
        _Atomic uint64_t total; // total of the series over all programs, as bits of a double
    } of[2];
};

// The head of a slot. One thread writes it; the agent reads head, cells_end and dropped.
struct ring {
    _Alignas(SEGMENT_LINE) _Atomic uint64_t head; // published with release after the record
    // private to the producer: it may write up to here without checks; head + record ≤ limit and no
    // record wraps
    uint64_t limit;
    uint64_t mask;              // ring_bytes - 1
    _Atomic uint32_t cells_end; // handles from here on were never used in this slot
    uint32_t index;             // index of the slot
    _Atomic uint64_t dropped;   // dropped points (a row of n values counts n), spans and notes
    uint64_t spans; // number of spans that were ever begun in this slot; used for their ids
    // private to the producer: time of its last check for the agent
    uint32_t looked_ms;
    uint32_t step;     // bytes until the next check
    bool ticks;        // a copy of header.clock in the same cache line
    _Atomic bool used; // a thread owns the slot
};

struct segment_hello {
    uint64_t magic;
    uint32_t version;
    // a copy of header.moves: if two agents have the segment, the agent with the latest HELLO reads
    // it
    uint32_t moves;
};

_Static_assert(sizeof(struct segment_header) <= SEGMENT_PAGE,
               "the header is in the first page of any size");
_Static_assert(sizeof(struct ring) == SEGMENT_LINE, "what the hot path touches is one cache line");
_Static_assert(sizeof(struct segment_agent) == SEGMENT_LINE + 8 * SEGMENT_CONVERSION_WORDS &&
                   sizeof(((struct segment_agent *)0)->tails[0]) == SEGMENT_LINE,
               "the agent's words do not share lines");
_Static_assert(SEGMENT_RECORD_WORDS_MAX * 8 * 2 <= SEGMENT_RING_MIN,
               "a pad and a record fit into any ring");
_Static_assert((SEGMENT_GROUP_MAX + 2) <= SEGMENT_RECORD_WORDS_MAX, "a full row is a record");
_Static_assert((SEGMENT_EVENT_WORDS + 1) * 8 + 4 + SEGMENT_TEXT_MAX +
                       SEGMENT_TAGS_MAX * (4 + SEGMENT_KEY_MAX + SEGMENT_VALUE_MAX) <=
                   SEGMENT_RECORD_WORDS_MAX * 8,
               "the largest annotation is a record");

// Offsets in the segment; within a slot, offsets from its struct ring.
enum {
    SEGMENT_CELLS_BYTES = SEGMENT_DEFINITIONS_MAX * 8,
    SLOT_CELLS = SEGMENT_PAGE,
    SLOT_DATA = SLOT_CELLS + SEGMENT_CELLS_BYTES,
    SEGMENT_AGENT_RESERVED = SEGMENT_PAGE_MAX, // the accounts follow
    SEGMENT_AGENT_BYTES =
        SEGMENT_AGENT_RESERVED + SEGMENT_DEFINITIONS_MAX * (int)sizeof(struct segment_account),
};

_Static_assert(sizeof(struct segment_agent) + SEGMENT_SLOTS_MAX * SEGMENT_LINE <=
                   SEGMENT_AGENT_RESERVED,
               "the agent's area has room for the tails of all slots");
_Static_assert(SEGMENT_AGENT_BYTES % SEGMENT_PAGE_MAX == 0,
               "the agent's area is whole pages of any size");

struct segment_layout {
    size_t definitions, gauges, common, slots, slot_bytes, bytes;
};

static inline struct segment_layout segment_layout(uint32_t slots, uint64_t ring_bytes)
{
    struct segment_layout l;
    l.definitions = SEGMENT_PAGE_MAX;
    l.gauges = l.definitions + SEGMENT_DEFINITIONS_BYTES;
    l.common = l.gauges + SEGMENT_CELLS_BYTES;
    l.slots = l.common + SEGMENT_CELLS_BYTES;
    l.slot_bytes = SLOT_DATA + (size_t)ring_bytes;
    l.bytes = l.slots + l.slot_bytes * slots;
    return l;
}

static inline uint64_t segment_word(enum segment_type type, unsigned flags, uint64_t words,
                                    uint32_t handle)
{
    return (uint64_t)type | (uint64_t)flags << 8 | words << 16 | (uint64_t)handle << 32;
}

#endif
