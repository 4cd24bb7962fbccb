// overflow.h - a file without a name, for unpacked parts of cold blocks that a snapshot may not
// keep in memory (store_snapshot_overflow).
//
// A reader of all series, one after another, reads each part once for each of its series. Unpacking
// a part takes longer than reading it from this file, whose pages the kernel may drop from memory.
//
//   ┌ chunk ───────────────┬ chunk ───────────────┐   the disk space of a chunk is reserved before
//   │ part │ part │        │ part │ part │ part │ │   it is mapped, so no write can fail
//   └──────────────────────┴──────────────────────┘
#ifndef SONDE_STORE_OVERFLOW_H
#define SONDE_STORE_OVERFLOW_H

#include "store/read.h"

// Returns the place for a part, which is valid until store_overflow_close. NULL: the file has no
// room.
uint8_t *overflow_take(struct store_overflow *o, size_t size);

// True if the file has had no room for a part.
bool overflow_is_full(const struct store_overflow *o);

// Gives back the place that was taken last.
void overflow_give_back(struct store_overflow *o, const uint8_t *place);

#endif
