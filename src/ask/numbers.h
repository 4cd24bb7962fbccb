// numbers.h - columns of numbers on the wire, in chunks of at most CODEC_VALUES_MAX numbers. Each
// chunk is a varint size, then this many bytes of the store's codec.
#ifndef SONDE_ASK_NUMBERS_H
#define SONDE_ASK_NUMBERS_H

#include "base/bytes.h"

// `numbers` points to `count` values: int64_t if `times` is true, else double.
void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out);

// Returns 0 or -EBADMSG. The caller must limit `count`, because a few bytes may stand for many
// numbers.
int ask_numbers_read(struct bytes *b, void *numbers, size_t count, bool times);

#endif
