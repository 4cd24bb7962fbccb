// tree.h - computes the tree of relays for jobs with more nodes than one hub shall ask.
//
//   root ─┬─ 1 ─┬─ F+1          member i > 0 is behind member (i - 1) / F; member 0 is the root, whose hub collects everything.
//         │     ├─ …            No member has more than F children. The tree has the least depth and the fewest relays: of 1,000 members with F = 64
//         │     └─ 2F           these are 15, of 10,000 they are 156. Members never change their places, so a change of one touches no other.
//         ├─ 2 ─── 2F+1 …
//         └─ F
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
