// nearest.h - "did you mean …?"
//
// Finds the candidate with the fewest edits (insert, delete, replace, swap neighbours) from the
// typed word. A candidate that begins with the typed word counts as near, too. Case is ignored.
// Distant candidates are not suggested.
#ifndef SONDE_CLI_NEAREST_H
#define SONDE_CLI_NEAREST_H

#include "base/str.h"

enum { NEAREST_SIZE_MAX = 64 }; // longer words are not compared

struct nearest {
    struct str typed;
    struct str best; // data NULL if no candidate is near
    size_t distance; // of the best candidate
};

static inline struct nearest nearest_to(struct str typed)
{
    return (struct nearest){.typed = typed};
}

// The candidate's bytes must live as long as `best` is used.
void nearest_offer(struct nearest *n, struct str candidate);

// The number of edits between two words; SIZE_MAX if one is longer than NEAREST_SIZE_MAX.
size_t nearest_distance(struct str a, struct str b);

#endif
