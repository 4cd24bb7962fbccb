#include "ask/numbers.h"

#include "store/codec.h"

#include <assert.h>
#include <errno.h>

// Each chunk is encoded in the buffer itself, after room for a size of this many bytes. A column of
// CODEC_VALUES_MAX random numbers has such a size; a shorter chunk moves to its shorter size.
enum { SIZE_BYTES = 3 };
static_assert((CODEC_VALUES_MAX + CODEC_VALUES_MAX / 4) * 8 < 1 << 7 * SIZE_BYTES,
              "the size of a chunk fits into its room");

void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out)
{
    const uint64_t *from = numbers; // times and values both have 8 bytes
    for (size_t n; count; count -= n, from += n) {
        n = count < CODEC_VALUES_MAX ? count : CODEC_VALUES_MAX;
        if (!buf_reserve(out, SIZE_BYTES + codec_bound(n)))
            return;
        uint8_t *piece = (uint8_t *)out->data + out->size + SIZE_BYTES;
        size_t size = times ? codec_encode_times((const int64_t *)from, n, CODEC_HOT, piece)
                            : codec_encode((const double *)from, n, CODEC_HOT, piece, NULL);
        buf_varint(out, size);
        if ((uint8_t *)out->data + out->size != piece)
            memmove(out->data + out->size, piece, size);
        out->size += size;
    }
}

int ask_numbers_read(struct bytes *b, void *numbers, size_t count, bool times)
{
    uint64_t *to = numbers;
    for (size_t n; count; count -= n, to += n) {
        n = count < CODEC_VALUES_MAX ? count : CODEC_VALUES_MAX;
        struct str piece = bytes_short(b);
        const uint8_t *bytes = (const uint8_t *)piece.data;
        if (b->failed || (times ? codec_decode_times(bytes, piece.size, n, (int64_t *)to)
                                : codec_decode(bytes, piece.size, n, (double *)to)))
            return -EBADMSG;
    }
    return 0;
}
