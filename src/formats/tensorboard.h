// tensorboard.h - the events in TensorBoard's files: each is a protobuf message in a record of
// tfrecord.h.
//
//   Event     1 wall_time (double, seconds) · 2 step · 3 file_version · 5 summary: 1 value …
//   Value     1 tag · 2 simple_value (float) · 8 tensor · 9 metadata: 3 summary_description
//   51790 of Event, 51791 of Value: our own, which other readers skip: the time in nanoseconds, and
//   the value as a double if the fields above are too coarse for it. Each event of sonde has 51790,
//   which says that its tags are escaped and that sonde can read its description back.
#ifndef SONDE_FORMATS_TENSORBOARD_H
#define SONDE_FORMATS_TENSORBOARD_H

#include "base/bytes.h"

struct tensorboard_scalar {
    struct str tag;   // of the curve
    struct str about; // its description; empty: none
    int64_t step, t_ns;
    double value;
    bool ours; // after reading: sonde has written the event
};

// Adds the first record of a file.
void tensorboard_add_version(struct buf *out);
void tensorboard_add_scalar(struct buf *out, const struct tensorboard_scalar *s);

// Calls take() for each scalar of the event, with texts that point into the event. Returns the
// first non-zero result of take(), or -EBADMSG if the event is damaged.
typedef int tensorboard_take_fn(void *user, const struct tensorboard_scalar *s);
int tensorboard_read(struct str event, tensorboard_take_fn *take, void *user);

// Writes a part of a tag: '%', '/', '=', ',' and control characters become %XX.
void tensorboard_add_escaped(struct buf *out, struct str text);
void tensorboard_add_unescaped(struct buf *out, struct str text);

#endif
