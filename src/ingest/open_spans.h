// open_spans.h - the spans that a program has begun and not ended. They end with its process.
//
// A process that is killed writes no ends. So the ingest keeps a copy of each begin that it has
// stored without an end; when the process has ended, it stores each copy once more, with that time
// as the end and with the tag STORE_UNFINISHED_TAG. An end that the program itself writes replaces
// such a record, because the last record of a span counts.
//
// An agent that continues another one's recording finds the open spans there
// (ingest_options.open_spans). Which program they belong to follows from their ids: hash_u64(number
// ^ salt of the program), where the number has the slot in its upper bits.
#ifndef SONDE_INGEST_OPEN_SPANS_H
#define SONDE_INGEST_OPEN_SPANS_H

#include "store/store.h"

struct ingest;
struct program;
struct open_span;

enum {
    // over all programs, some 10,000 spans; further spans stay open. The agent has 16 MiB in all
    OPEN_SPANS_BYTES_MAX = 4 << 20,
    OPEN_SPANS_SLOT_SHIFT = 40, // of a span's number in its process (emit/events.c)
};

// A hash table with open addressing by id, at most 3/4 full. A zero-initialised one is empty.
struct open_spans {
    struct open_span **slots;
    size_t count, capacity; // a power of two
};

void open_spans_add(struct ingest *in, struct open_spans *s, const struct store_event *event);
// Returns NULL if no such span is open. The result is valid until the next call that changes *s.
const struct store_event *open_spans_find(const struct open_spans *s, uint64_t id);
void open_spans_remove(struct ingest *in, struct open_spans *s, uint64_t id);
// Stores the ends of all open spans, and empties the list.
void open_spans_end(struct ingest *in, struct open_spans *s, int64_t end_ns);
void open_spans_free(struct ingest *in, struct open_spans *s); // empties the list

// The spans that were open in the recording when this agent began, and that belong to no known
// program. The first call reads them.
struct open_spans *open_spans_recorded(struct ingest *in);

// Assigns the open spans in the recording to a program that another agent has read before.
void open_spans_resume(struct ingest *in, struct program *p);

#endif
