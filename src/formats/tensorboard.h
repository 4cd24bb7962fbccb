// tensorboard.h - the events of TensorBoard's files: messages of protobuf, each a record of
// tfrecord.h.
//
//   Event     1 wall_time (double, seconds) · 2 step · 3 file_version · 5 summary: 1 value …
//   Value     1 tag · 2 simple_value (float) · 8 tensor · 9 metadata: 3 summary_description
//   51790 of Event, 51791 of Value: ours, which other readers skip: the time in nanoseconds, and
//   the value as a double, where the fields above are too coarse for them. Only sonde writes 51790,
//   in every event: such an event has escaped tags and a description that sonde can read back.
#ifndef SONDE_FORMATS_TENSORBOARD_H
#define SONDE_FORMATS_TENSORBOARD_H

#include "base/bytes.h"

struct tensorboard_scalar {
    struct str tag;   // of the curve
    struct str about; // its description; empty: none
    int64_t step, t_ns;
    double value;
    bool ours; // read: sonde has written the event
};

// The first record of a file.
void tensorboard_add_version(struct buf *out);
void tensorboard_add_scalar(struct buf *out, const struct tensorboard_scalar *s);

// Calls take() for each scalar of the event; texts are views of it. Returns what take() has
// returned if it is not 0, or -EBADMSG for an event that is damaged.
typedef int tensorboard_take_fn(void *user, const struct tensorboard_scalar *s);
int tensorboard_read(struct str event, tensorboard_take_fn *take, void *user);

// Parts of a tag: %XX stands for '%', '/', '=', ',' and control characters.
void tensorboard_add_escaped(struct buf *out, struct str text);
void tensorboard_add_unescaped(struct buf *out, struct str text);

#endif
