#include "ask/numbers.h"

#include "store/codec.h"

#include <errno.h>
#include <stdlib.h>

void ask_numbers_write(const void *numbers, size_t count, bool times, struct buf *out)
{
    const uint64_t *from = numbers; // times and values both have 8 bytes
    for (size_t n; count; count -= n, from += n) {
        n = count < CODEC_VALUES_MAX ? count : CODEC_VALUES_MAX;
        uint8_t *piece = malloc(codec_bound(n));
        if (!piece) {
            out->failed = true;
            return;
        }
        size_t size = times ? codec_encode_times((const int64_t *)from, n, CODEC_HOT, piece)
                            : codec_encode((const double *)from, n, CODEC_HOT, piece, NULL);
        buf_short(out, (struct str){(char *)piece, size});
        free(piece);
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
