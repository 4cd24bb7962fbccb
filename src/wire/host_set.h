// host_set.h - the values of the label `host` in a node's store. With them, the hub sends a
// question about some hosts only to nodes that may hold their series.
//
// Usually the only value is the node's own name, which the set always includes. Programs and
// senders may use other values (`host=x` in a received point). A store never removes series, so the
// set only grows: hosts that are added twice, late or in another order give the same set. With more
// than WIRE_HOST_SET_MAX other hosts, for a longer name, or if memory is exhausted, the set becomes
// `any`. That is always safe.
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
    // maximum bytes of an entry in a HOSTS
    WIRE_HOST_SET_ENTRY_MAX = (WIRE_HOST_SET_MAX + 1) * (WIRE_HOST_MAX + 2) + 2,
};

struct wire_host_set {
    bool known; // false: the node has not reported its hosts
    bool any, without;
    size_t count;
    struct str *values; // room for WIRE_HOST_SET_MAX; NULL: no values yet
};

// Adds a copy of the value. Returns true if the set has changed.
bool wire_host_set_add(struct wire_host_set *h, struct str value);
bool wire_host_set_merge(struct wire_host_set *to, const struct wire_host_set *from);
void wire_host_set_free(
    struct wire_host_set *h); // only for a set that wire_host_set_add has filled

void wire_host_set_write(struct str node, const struct wire_host_set *h, struct buf *out);
// Reads the next entry of a HOSTS. Texts point into the payload; `room` holds the values. Returns
// 0, or -EBADMSG for malformed bytes.
int wire_host_set_read(struct bytes *rest, struct str room[WIRE_HOST_SET_MAX], struct str *node,
                       struct wire_host_set *out);

#endif
