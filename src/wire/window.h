// window.h - what a link has laid into its window and nobody has taken yet: a ring, first laid,
// first taken.
//
//   0        tail              head           WIRE_WINDOW_BYTES
//   ├────────┼█████│███│███████┼──────────────┤        a piece lies in one stretch: it is cut at the end of the ring
#ifndef SONDE_WIRE_WINDOW_H
#define SONDE_WIRE_WINDOW_H

#include "base/str.h"
#include "wire/bulk.h"

// A lap has at most WINDOW / LAID_MIN pieces, one cut at its end, and one rest.
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

// Copies as much of the beginning of `data` as there is room for. False: wait until something is
// taken.
bool window_lay(struct window *w, uint32_t id, struct str data, struct window_piece *out);

// The oldest so many bytes were taken: whole pieces. False: it is not so.
bool window_taken(struct window *w, uint32_t bytes);

#endif
