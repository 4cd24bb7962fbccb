// held.h - which values of the label `host` a node's store holds, so that a question about some
// hosts goes only to nodes that can have them.
//
// Mostly that is the node's own name, which is not said; programs and senders may name others
// (`host=x` in a point that is put). A store's series are never forgotten, so the set only grows:
// what is learned twice, late or in another order gives the same set. Past WIRE_HELD_MAX others,
// for a longer name, and where there is no memory it is `any`, which is always safe.
//
//   in HOSTS   short node, u8 bits (1: known, 2: any, 4: some series have no host at all), varint count, short host…
#ifndef SONDE_WIRE_HELD_H
#define SONDE_WIRE_HELD_H

#include "wire/settings.h"

#include "base/bytes.h"

enum {
    // beside the node's own name
    WIRE_HELD_MAX = 16,
    WIRE_HELD_ENTRY_MAX = (WIRE_HELD_MAX + 1) * (WIRE_HOST_MAX + 2) + 2, // bytes in a HOSTS
};

struct wire_held {
    bool known; // false: the node has not told it
    bool any, without;
    size_t count;
    struct str *values; // room for WIRE_HELD_MAX; NULL: none so far
};

// Copies. Whether the set has changed.
bool wire_held_add(struct wire_held *h, struct str value);
bool wire_held_merge(struct wire_held *to, const struct wire_held *from);
void wire_held_free(struct wire_held *h); // one that wire_held_add has filled

void wire_held_write(struct str node, const struct wire_held *h, struct buf *out);
// The next entry of a HOSTS. Texts are views; `room` becomes its values. -EBADMSG.
int wire_held_read(struct bytes *rest, struct str room[WIRE_HELD_MAX], struct str *node,
                   struct wire_held *out);

#endif
