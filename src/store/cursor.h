// cursor.h - a cursor's insides, for the files that make it up.
//
//   pieces.c   finds the pieces that a series' points lie in, and loads them
//   cursor.c   cuts time into slices and makes runs of them
//   before.c   the last point at or before a time: the same pieces, no cursor kept
#ifndef SONDE_STORE_CURSOR_H
#define SONDE_STORE_CURSOR_H

#include "store/reader.h"

// One column of a block, or its cells in a tail.
struct piece {
    int64_t first_ns, last_ns;
    uint64_t order;          // of sealing; tails are newer than any block
    uint64_t rank;           // among those of equal order
    struct block_ref *block; // NULL: of a tail, loaded from the start
    struct block_entry entry;
    bool loaded;
    struct column column;
    size_t at; // points before it have been given
};

// The order of precedence between two points of a series with one time stamp. A point appended
// singly beats those in sets, whenever each was sealed: writers append a point singly if it has to
// win over the cell of a set (shared.c, docs/format.md). Otherwise the newer piece wins. The
// remaining fields break ties.
#define RANK_SINGLE UINT32_MAX

static inline uint64_t piece_rank(bool set, uint32_t owner, uint64_t sequence)
{
    return (uint64_t)(set ? RANK_SINGLE - 1 - owner : RANK_SINGLE) << 32 | (uint32_t)sequence;
}

static inline bool piece_newer(const struct piece *a, const struct piece *b)
{
    bool single = a->rank >> 32 == RANK_SINGLE;
    if (single != (b->rank >> 32 == RANK_SINGLE))
        return single;
    return a->order != b->order ? a->order > b->order : a->rank > b->rank;
}

struct piece_list { // by first_ns, those before `at` done with
    struct piece *all;
    size_t count, capacity, at;
};

// Blocks that follow each other in time: looked up when the cursor comes to them.
struct stream {
    struct block_list list;
    size_t at, end; // of the list, what lies in range
    uint32_t id;    // the column or series in them
};

struct store_cursor {
    struct store_cursor *next_idle;
    struct store_snapshot *s;
    uint32_t series;
    int64_t from_ns, to_ns;
    struct piece_list pieces; // in hand
    struct piece_list later;  // of tails, and of blocks that overlap: not yet in hand
    struct stream stream;
    bool pending;       // there is something later or in the stream…
    int64_t pending_ns; // …that begins no earlier
    bool streams;       // ordered blocks may be left to the stream
    int64_t next_ns;    // everything before has been given
    bool done;
    unsigned depth;
    size_t whole; // the run given last, if it is a piece as it stands; else WHOLE_NONE…
    int64_t *t;   // …and here are its points
    double *v;
    size_t count;
};

#define WHOLE_NONE SIZE_MAX

enum { MOVES_MAX = 1000 }; // of a snapshot while one cursor gathers its pieces

// pieces.c. What calls of pieces_visit get: one piece at a time, to keep or to free. A negative
// errno ends it.
typedef int piece_fn(struct store_cursor *c, struct piece *p);

// All pieces that may have points in from_ns..to_ns, the newest first; each() may narrow the range
// meanwhile.
int pieces_visit(struct store_cursor *c, piece_fn *each);

// Finds the pieces in from_ns..to_ns at their current places. 0 or a negative errno, but not
// -ESTALE.
int pieces_gather(struct store_cursor *c);

// Opens the next pending piece: 0, -ESTALE, -ENOMEM.
int pieces_pull(struct store_cursor *c);

// Makes p->column hold the piece's points; none when it is damaged or gone.
int piece_load(struct store_cursor *c, struct piece *p);
void piece_free(struct store_cursor *c, struct piece *p);
void pieces_drop(struct store_cursor *c); // all of them

// cursor.c
struct store_cursor *cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                 int64_t to_ns, unsigned depth);

#endif
