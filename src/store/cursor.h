// cursor.h - the internals of a cursor.
//
//   pieces.c   finds the pieces with a series' points, and loads them
//   cursor.c   cuts time into slices, and makes a run of each
//   latest_point.c   finds the last point at or before a time: the same pieces, without a cursor
#ifndef SONDE_STORE_CURSOR_H
#define SONDE_STORE_CURSOR_H

#include "store/reader.h"

// One column of a block, or the cells of one series in a tail.
struct piece {
    int64_t first_ns, last_ns;
    uint64_t order;          // grows in order of sealing; a tail has a greater order than any block
    uint64_t rank;           // among pieces of equal order
    struct block_ref *block; // NULL: the piece belongs to a tail, and its points are already loaded
    struct block_entry entry;
    bool loaded;
    struct column column;
    size_t at; // points before it have been returned
};

// Decides which of two points of a series at one time stamp is newer. A point that was appended
// singly wins over cells of sets, whichever was sealed later, because a writer appends a point
// singly if it must win over the cell of a set (shared_series.c, docs/format.md). Otherwise the
// newer piece wins. The remaining fields break ties.
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

struct piece_list { // sorted by first_ns; the pieces before `at` are finished
    struct piece *all;
    size_t count, capacity, at;
};

// Blocks that follow each other in time. The cursor looks up each block when it reaches it.
struct stream {
    struct block_list list;
    size_t at, end; // the part of the list within the range
    uint32_t id;    // id of the column or series in these blocks
};

struct store_cursor {
    struct store_cursor *next_idle;
    struct store_snapshot *s;
    uint32_t series;
    int64_t from_ns, to_ns;
    struct piece_list pieces; // loaded pieces
    struct piece_list later;  // pieces of tails and of overlapping blocks that are not loaded yet
    struct stream stream;
    bool pending;       // `later` or the stream has more pieces…
    int64_t pending_ns; // …which begin at this time or later
    bool streams;       // ordered blocks stay in the stream, which looks them up later
    int64_t next_ns;    // all earlier points have been returned
    bool done;
    unsigned depth;
    size_t whole; // the last run returned, if it is an unmerged piece; otherwise WHOLE_NONE…
    int64_t *t;   // …and these are its points
    double *v;
    size_t count;
};

#define WHOLE_NONE SIZE_MAX

enum { MOVES_MAX = 1000 }; // limit of the snapshot's moves while one cursor gathers its pieces

// From pieces.c. pieces_visit calls this function with one piece at a time. The function keeps or
// frees the piece. A negative errno ends the visit.
typedef int piece_fn(struct store_cursor *c, struct piece *p);

// Visits all pieces that may have points in from_ns..to_ns, newest first. `each` may narrow the
// range meanwhile.
int pieces_visit(struct store_cursor *c, piece_fn *each);

// Finds the pieces in from_ns..to_ns at their current places. Returns 0 or a negative errno, but
// never -ESTALE.
int pieces_gather(struct store_cursor *c);

// Opens the next pending piece. Returns 0, -ESTALE or -ENOMEM.
int pieces_pull(struct store_cursor *c);

// Loads the piece's points into p->column. If the piece is damaged or no longer exists, the column
// has no points.
int piece_load(struct store_cursor *c, struct piece *p);
void piece_free(struct store_cursor *c, struct piece *p);
void pieces_drop(struct store_cursor *c); // frees all pieces

// cursor.c
struct store_cursor *cursor_open(struct store_snapshot *s, uint32_t series, int64_t from_ns,
                                 int64_t to_ns, unsigned depth);

#endif
