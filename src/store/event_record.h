// event_record.h - spans and annotations as bytes.
//
//   { u32 size of the whole record, a multiple of 8; u32 crc32c of the rest;
//     i64 start_ns, end_ns; u64 id, parent; u8 kind;
//     varint number of labels; short text; short key, short value …; zeros up to the size }
#ifndef SONDE_STORE_EVENT_RECORD_H
#define SONDE_STORE_EVENT_RECORD_H

#include "base/bytes.h"
#include "store/store.h"

enum { // upper limits in bytes
    EVENT_HEAD_BYTES_MAX = 64,
    EVENT_SHORT_BYTES_MAX = 4, // maximum bytes of a text's length
    EVENT_BYTES_MAX =
        EVENT_HEAD_BYTES_MAX + EVENT_SHORT_BYTES_MAX + STORE_TEXT_MAX +
        STORE_LABELS_MAX * (2 * EVENT_SHORT_BYTES_MAX + STORE_KEY_MAX + STORE_VALUE_MAX)
};

// Checks the limits. Returns 0, -E2BIG or -EINVAL.
int event_check(const struct store_event *event);
void event_put(struct buf *out, const struct store_event *event);

// Reads the next record. Returns 1, 0 at the end, or -EBADMSG. *out points into its bytes; labels
// are in `labels`.
int event_next(struct bytes *in, struct store_event *out,
               struct store_label labels[STORE_LABELS_MAX]);

#endif
