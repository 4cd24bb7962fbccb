// window.h - the pieces in a link's window that the hub has not taken yet: a ring, first in, first
// out.
//
//   0        tail              head           WIRE_WINDOW_BYTES
//   ├────────┼█████│███│███████┼──────────────┤
//
// A piece is contiguous: at the end of the ring it is cut.
#ifndef SONDE_WIRE_WINDOW_H
#define SONDE_WIRE_WINDOW_H

#include "base/str.h"
#include "wire/bulk.h"

// One lap of the ring has at most WINDOW / LAID_MIN pieces, one cut at the ring's end, and one
// remainder.
enum { WINDOW_PIECES_MAX = WIRE_WINDOW_BYTES / WIRE_LAID_MIN + 2 };

struct window_piece {
    uint32_t id, offset, size;
};

struct window {
    char *memory; // WIRE_WINDOW_BYTES
    uint32_t head, used;
    struct window_piece pieces[WINDOW_PIECES_MAX]; // a ring, too
    uint32_t first, count;
};

// Copies as much of the beginning of `data` as the window has room for. Returns false if it has no
// room: the caller must wait until the hub has taken pieces.
bool window_lay(struct window *w, uint32_t id, struct str data, struct window_piece *out);

// Releases the oldest `bytes` bytes. Returns false if they are not whole pieces.
bool window_taken(struct window *w, uint32_t bytes);

#endif
