// tree.h - computes the tree of relays for jobs with more nodes than one hub should ask.
//
//   root ─┬─ 1 ─┬─ F+1
//         │     ├─ …
//         │     └─ 2F
//         ├─ 2 ─── 2F+1 …
//         └─ F
//
// Member i > 0 is behind member (i - 1) / F; member 0 is the root, whose hub collects everything.
// No member has more than F children. The tree has the least depth and the fewest relays: with F =
// 64, 15 of 1,000 members are relays, and 156 of 10,000. Members keep their places, so replacing
// one member does not affect the others.
#ifndef SONDE_WIRE_TREE_H
#define SONDE_WIRE_TREE_H

#include <stdbool.h>
#include <stddef.h>

enum { WIRE_FANOUT_DEFAULT = 64, WIRE_FANOUT_MIN = 2, WIRE_FANOUT_MAX = 16384 };

static inline size_t wire_tree_parent(size_t member, size_t fanout)
{
    return (member - 1) / fanout;
}

static inline bool wire_tree_is_relay(size_t member, size_t count, size_t fanout)
{
    return member > 0 && member * fanout + 1 < count;
}

#endif
