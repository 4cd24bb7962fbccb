// open_spans.h - the spans that a program has begun and not ended. The agent ends them with the
// process.
//
// A killed process does not write the ends of its spans. So the ingest keeps a copy of each begin
// that it has stored without an end. When the process has ended, the ingest stores each copy once
// more, with the time of the process's end and with the tag STORE_UNFINISHED_TAG. An end that the
// program itself writes replaces such a record, because the last record of a span counts.
//
// A restarted agent finds the open spans in the recording (ingest_options.open_spans). The id of a
// span tells which program it belongs to: hash_u64(number ^ salt of the program), where the number
// has the slot in its upper bits.
#ifndef SONDE_INGEST_OPEN_SPANS_H
#define SONDE_INGEST_OPEN_SPANS_H

#include "store/store.h"

struct ingest;
struct program;
struct open_span;

enum {
    // limit over all programs, some 10,000 spans; the agent does not end further spans. The agent
    // has 16 MiB in all
    OPEN_SPANS_BYTES_MAX = 4 << 20,
    OPEN_SPANS_SLOT_SHIFT = 40, // shift of the slot in a span's number (emit/events.c)
};

// A hash table with open addressing by id, at most 3/4 full. A zero-initialised table is empty.
struct open_spans {
    struct open_span **slots;
    size_t count, capacity; // a power of two
};

void open_spans_add(struct ingest *in, struct open_spans *s, const struct store_event *event);
// Returns the open span with this id, or NULL. The result is valid until the next call that changes
// *s.
const struct store_event *open_spans_find(const struct open_spans *s, uint64_t id);
void open_spans_remove(struct ingest *in, struct open_spans *s, uint64_t id);
// Stores the ends of all open spans, and empties the list.
void open_spans_end(struct ingest *in, struct open_spans *s, int64_t end_ns);
void open_spans_free(struct ingest *in, struct open_spans *s); // empties the list

// Returns the spans that were open in the recording when this agent began, and that belong to no
// known program. The first call reads them.
struct open_spans *open_spans_recorded(struct ingest *in);

// Assigns open spans of the recording to a program that another agent has read before.
void open_spans_resume(struct ingest *in, struct program *p);

#endif
