// nearest.h - "did you mean …?"
//
// The candidate that takes the fewest edits (insert, delete, replace, swap neighbours) from what
// was typed; a candidate that starts with what was typed counts as near, too. Case is ignored.
// Far-fetched ones are not offered.
#ifndef SONDE_CLI_NEAREST_H
#define SONDE_CLI_NEAREST_H

#include "base/str.h"

enum { NEAREST_SIZE_MAX = 64 }; // longer words are not compared

struct nearest {
    struct str typed;
    struct str best; // data NULL while nothing is near
    size_t distance; // of the best
};

static inline struct nearest nearest_to(struct str typed)
{
    return (struct nearest){.typed = typed};
}

// The candidate's bytes must live as long as `best` is used.
void nearest_offer(struct nearest *n, struct str candidate);

// Edits between two words; SIZE_MAX when one is longer than NEAREST_SIZE_MAX.
size_t nearest_distance(struct str a, struct str b);

#endif
