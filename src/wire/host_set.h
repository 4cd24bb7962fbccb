// host_set.h - the values of the label `host` in a node's store, so that a question about some
// hosts goes only to nodes that can have them.
//
// Usually that is only the node's own name, which is implied; programs and senders may use others
// (`host=x` in a received point). A store never forgets series, so the set only grows: learning
// hosts twice, late or in another order gives the same set. With more than WIRE_HOST_SET_MAX other
// hosts, for a longer name, or without memory the set becomes `any`, which is always safe.
//
//   in HOSTS   short node, u8 bits (1: known, 2: any, 4: some series have no host at all),
//              varint count, short host…
#ifndef SONDE_WIRE_HOST_SET_H
#define SONDE_WIRE_HOST_SET_H

#include "wire/settings.h"

#include "base/bytes.h"

enum {
    // hosts in a set, besides the node's own name
    WIRE_HOST_SET_MAX = 16,
    WIRE_HOST_SET_ENTRY_MAX = (WIRE_HOST_SET_MAX + 1) * (WIRE_HOST_MAX + 2) + 2, // bytes in a HOSTS
};

struct wire_host_set {
    bool known; // false: the node has not reported it
    bool any, without;
    size_t count;
    struct str *values; // room for WIRE_HOST_SET_MAX; NULL: no values so far
};

// Copies the value. Returns whether the set has changed.
bool wire_host_set_add(struct wire_host_set *h, struct str value);
bool wire_host_set_merge(struct wire_host_set *to, const struct wire_host_set *from);
void wire_host_set_free(
    struct wire_host_set *h); // only for a set that wire_host_set_add has filled

void wire_host_set_write(struct str node, const struct wire_host_set *h, struct buf *out);
// Reads the next entry of a HOSTS. Texts point into the payload; `room` holds the values. Returns
// -EBADMSG for malformed bytes.
int wire_host_set_read(struct bytes *rest, struct str room[WIRE_HOST_SET_MAX], struct str *node,
                       struct wire_host_set *out);

#endif
