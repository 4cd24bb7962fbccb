// numbers.h - columns of numbers on the wire: pieces of at most CODEC_VALUES_MAX, each a varint
// size and so many bytes of the store's codecs.
#ifndef SONDE_ASK_NUMBERS_H
#define SONDE_ASK_NUMBERS_H

#include "base/bytes.h"

// `numbers` are `count` doubles, or with `times` int64_t.
void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out);

// -EBADMSG. There is no bound but the caller's: a few bytes may stand for many numbers.
int ask_numbers_read(struct bytes *b, void *numbers, size_t count, bool times);

#endif
