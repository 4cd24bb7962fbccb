// event_index.h - finds the blocks of events that a query has to read.
//
// The header of a block says when its events start, but not when they end. A span may have two
// records: one from its start, and one in a later block from its end. So a reader reads each block
// once. After that it knows the latest end of the block's events, and which events a later block
// has replaced:
//
//   block   1: begin A, begin B, end B      2: end A, begin C      3: end C
//   reaches    …end of B (A is replaced)       …end of A              …end of C
//
// The index identifies blocks by their numbers, which ascend in the order of arrival. It does not
// contain the events of tails.
#ifndef SONDE_STORE_EVENT_INDEX_H
#define SONDE_STORE_EVENT_INDEX_H

#include "store/store.h"

// Limit of the unfinished spans and the spans that ended in recent blocks: 32 MiB. With more spans,
// queries read all blocks, as without an index. Memory grows with these spans only, not with all
// spans of the file, because a span that ended long ago is not recorded again.
enum { EVENT_IDS_MAX = 1 << 20 };

struct event_block {
    uint64_t number;
    uint32_t crc;   // checksum of its data: distinguishes it from another block of the same number
    uint32_t open;  // number of spans without an end that no later record has replaced
    uint32_t kinds; // kinds of its events: bits 1 << enum store_event_kind
    int64_t first_ns, last_ns; // the earliest start, the latest end
    uint32_t *replaced;        // indices of replaced events, ascending
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
    struct event_id *ids; // hash table with open addressing: the place of each span's newest record
    size_t id_count, id_capacity;
    bool full;
    uint64_t blocks_read; // since creation, for the tests
};

// Returns NULL for a block that the index does not know.
const struct event_block *event_index_find(const struct event_index *x, uint64_t number,
                                           uint32_t crc);

// Adds a block: begin, then each of its events in order. Numbers must ascend. If they do not
// (-EAGAIN), or if memory is exhausted (-ENOMEM), the index removes all its contents. A full index
// ignores further blocks.
int event_index_begin(struct event_index *x, uint64_t number, uint32_t crc);
int event_index_add(struct event_index *x, uint32_t place, const struct store_event *event);

bool event_block_touches(const struct event_block *b, int64_t from_ns, int64_t to_ns);
bool event_block_replaced(const struct event_block *b, uint32_t place);
void event_index_free(struct event_index *x); // leaves it empty

#endif
