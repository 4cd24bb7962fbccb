// nearest.h - finds suggestions for "did you mean …?".
//
// It finds the candidate that needs the fewest edits (insert, delete, replace, swap neighbours) to
// become the typed word. A candidate that begins with the typed word is near, too. Case is ignored.
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

// Offers a candidate. Its bytes must live as long as `best` is used.
void nearest_offer(struct nearest *n, struct str candidate);

// Returns the number of edits between two words, or SIZE_MAX if one is longer than
// NEAREST_SIZE_MAX.
size_t nearest_distance(struct str a, struct str b);

#endif
