// labels_wire.h - labels in a request or a record: varint count, then for each: short key, short
// value.
#ifndef SONDE_ASK_LABELS_WIRE_H
#define SONDE_ASK_LABELS_WIRE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "store/store.h"

void ask_labels_write(const struct store_label *labels, size_t count, struct buf *out);

// Reads labels. The array is in `arena`; its texts are views of the bytes in `b`. Returns 0,
// -EBADMSG (damaged, or more than `most` labels) or -ENOMEM.
int ask_labels_read(struct bytes *b, struct arena *arena, size_t most, struct store_label **out,
                    size_t *count);

#endif
