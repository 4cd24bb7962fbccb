// numbers.h - columns of numbers on the wire: chunks of at most CODEC_VALUES_MAX numbers, each as a
// varint size and that many bytes of the store's codec.
#ifndef SONDE_ASK_NUMBERS_H
#define SONDE_ASK_NUMBERS_H

#include "base/bytes.h"

// `numbers` points to `count` doubles, or with `times` to int64_t.
void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out);

// Returns -EBADMSG. Only the caller limits `count`: a few bytes may stand for many numbers.
int ask_numbers_read(struct bytes *b, void *numbers, size_t count, bool times);

#endif
