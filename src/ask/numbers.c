#include "ask/numbers.h"

#include "store/codec.h"

#include <assert.h>
#include <errno.h>

// A long chunk is encoded in the buffer itself, after room for a size of this many bytes. A column
// of CODEC_VALUES_MAX random numbers has such a size; a shorter chunk moves to its shorter size.
enum { SIZE_BYTES = 3, SHORT_BYTES = 4096 };
static_assert((CODEC_VALUES_MAX + CODEC_VALUES_MAX / 4) * 8 < 1 << 7 * SIZE_BYTES,
              "the size of a chunk fits into its room");

static size_t encode(const uint64_t *from, size_t n, bool times, uint8_t *out)
{
    return times ? codec_encode_times((const int64_t *)from, n, CODEC_HOT, out)
                 : codec_encode((const double *)from, n, CODEC_HOT, out, NULL);
}

// The bound of a chunk is several times its usual size. So a short one is encoded outside of the
// buffer, which then stays small.
static void write_short(const uint64_t *from, size_t n, bool times, struct buf *out)
{
    uint8_t piece[SHORT_BYTES];
    size_t size = encode(from, n, times, piece);
    buf_varint(out, size);
    buf_add(out, piece, size);
}

static void write_long(const uint64_t *from, size_t n, bool times, struct buf *out)
{
    if (!buf_reserve(out, SIZE_BYTES + codec_bound(n)))
        return;
    uint8_t *piece = (uint8_t *)out->data + out->size + SIZE_BYTES;
    size_t size = encode(from, n, times, piece);
    buf_varint(out, size);
    if ((uint8_t *)out->data + out->size != piece)
        memmove(out->data + out->size, piece, size);
    out->size += size;
}

void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out)
{
    const uint64_t *from = numbers; // times and values both have 8 bytes
    for (size_t n; count; count -= n, from += n) {
        n = count < CODEC_VALUES_MAX ? count : CODEC_VALUES_MAX;
        if (codec_bound(n) <= SHORT_BYTES)
            write_short(from, n, times, out);
        else
            write_long(from, n, times, out);
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
