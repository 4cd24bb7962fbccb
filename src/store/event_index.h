// event_index.h - which blocks of events a query has to read.
//
// The header of a block says when its events start, not when they end. A span may be there twice:
// as it began, and in a later block as it ended. So each block is read once. After that the reader
// knows how far its events reach, and which of them a later block has replaced:
//
//   block   1: begin A, begin B, end B      2: end A, begin C      3: end C
//   reaches    …end of B (A is replaced)       …end of A              …end of C
//
// Blocks are known by their numbers, which ascend in the order of arrival. The events of tails are
// not in here.
#ifndef SONDE_STORE_EVENT_INDEX_H
#define SONDE_STORE_EVENT_INDEX_H

#include "store/store.h"

// Spans that go on, or ended in recent blocks: 32 MiB. If there are more, all blocks are read, as
// without an index. Memory is in proportion to these, not to all spans of the file: a span that
// ended long ago is not expected to be recorded again.
enum { EVENT_IDS_MAX = 1 << 20 };

struct event_block {
    uint64_t number;
    uint32_t crc;              // of its data: another block of that number is not this one
    uint32_t open;             // spans without an end that nothing has replaced
    uint32_t kinds;            // of its events: 1 << enum store_event_kind
    int64_t first_ns, last_ns; // the earliest start, the latest end
    uint32_t *replaced;        // places of events in it, ascending
    uint32_t replaced_count, replaced_capacity;
};

struct event_id {
    uint64_t id; // 0: empty
    uint32_t block;
    uint32_t place : 31, open : 1;
};

struct event_index {
    struct event_block *blocks;
    size_t count, capacity;
    struct event_id *ids; // open addressing: where the newest record of each span is
    size_t id_count, id_capacity;
    bool full;
    uint64_t blocks_read; // ever, for the tests
};

// NULL: not read yet.
const struct event_block *event_index_find(const struct event_index *x, uint64_t number,
                                           uint32_t crc);

// Adds a block: begin, then each of its events in order. Numbers have to ascend; if they do not
// (-EAGAIN), or memory is out (-ENOMEM), the index forgets everything. A full index takes no more.
int event_index_begin(struct event_index *x, uint64_t number, uint32_t crc);
int event_index_add(struct event_index *x, uint32_t place, const struct store_event *event);

bool event_block_touches(const struct event_block *b, int64_t from_ns, int64_t to_ns);
bool event_block_replaced(const struct event_block *b, uint32_t place);
void event_index_free(struct event_index *x); // leaves it empty

#endif
