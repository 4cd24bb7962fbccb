#include "formats/parquet_pack.h"

#include <assert.h>

enum { GROUP = 8, LITERALS_MAX = 64 * GROUP, BLOCK = 128, MINI = 32, MINIS = BLOCK / MINI };

unsigned parquet_width(uint32_t most)
{
    return most ? 32 - (unsigned)__builtin_clz(most) : 0;
}

static unsigned width_of(uint64_t most)
{
    return most ? 64 - (unsigned)__builtin_clzll(most) : 0;
}

// Writes numbers of `width` bits each, the lowest bits first. `count` is a multiple of 8.
static void pack(struct buf *out, unsigned width, const uint64_t *numbers, size_t count)
{
    uint64_t bits = 0;
    unsigned filled = 0;
    if (!buf_reserve(out, count / 8 * width + 8))
        return;
    char *at = out->data + out->size;
    for (size_t i = 0; i < count; i++) {
        bits |= numbers[i] << filled;
        unsigned fits = 64 - filled;
        filled += width;
        if (filled < 64)
            continue;
        memcpy(at, &bits, 8);
        at += 8;
        filled -= 64;
        bits = fits < 64 ? numbers[i] >> fits : 0;
    }
    memcpy(at, &bits, 8);
    out->size += count / 8 * width;
}

static void put_literals(struct buf *out, unsigned width, uint64_t *literals, size_t *count)
{
    if (!*count)
        return;
    while (*count % GROUP)
        literals[(*count)++] = 0;
    buf_varint(out, *count / GROUP << 1 | 1);
    pack(out, width, literals, *count);
    *count = 0;
}

void parquet_put_runs(struct buf *out, unsigned width, const struct parquet_run *runs, size_t count)
{
    uint64_t literals[LITERALS_MAX];
    size_t waiting = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t left = runs[i].count;
        while (left && (waiting % GROUP || left < GROUP)) {
            literals[waiting++] = runs[i].number;
            left--;
            if (waiting == LITERALS_MAX)
                put_literals(out, width, literals, &waiting);
        }
        if (!left)
            continue;
        put_literals(out, width, literals, &waiting);
        buf_varint(out, (uint64_t)left << 1);
        buf_add(out, &runs[i].number, (width + 7) / 8);
    }
    put_literals(out, width, literals, &waiting);
}

void parquet_put_deltas(struct buf *out, const int64_t *numbers, size_t count)
{
    uint64_t deltas[BLOCK];
    buf_varint(out, BLOCK);
    buf_varint(out, MINIS);
    buf_varint(out, count);
    buf_varint(out, zigzag(count ? numbers[0] : 0));
    for (size_t at = 1; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? count - at : BLOCK;
        int64_t least = INT64_MAX;
        for (size_t i = 0; i < n; i++) { // unsigned, because a delta may need 65 bits and wrap
            deltas[i] = (uint64_t)numbers[at + i] - (uint64_t)numbers[at + i - 1];
            least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
        }
        buf_varint(out, zigzag(least));
        uint8_t widths[MINIS] = {0};
        for (size_t i = 0; i < BLOCK; i++) {
            deltas[i] = i < n ? deltas[i] - (uint64_t)least : 0;
            unsigned width = width_of(deltas[i]);
            widths[i / MINI] = (uint8_t)(width > widths[i / MINI] ? width : widths[i / MINI]);
        }
        buf_add(out, widths, MINIS);
        for (size_t m = 0; m < MINIS && m * MINI < n; m++)
            pack(out, widths[m], deltas + m * MINI, MINI);
    }
}

// ---------------------------------------------------------------- reading

// Reads the number of `width` bits that begins at bit `at`.
static uint64_t unpack(struct str bytes, size_t at, unsigned width)
{
    uint64_t v = 0;
    for (unsigned done = 0; done < width;) {
        size_t bit = at + done;
        unsigned byte = (uint8_t)bytes.data[bit / 8], in_byte = (unsigned)(bit % 8),
                 take = 8 - in_byte;
        take = take > width - done ? width - done : take;
        uint64_t part = byte >> in_byte & ((1u << take) - 1);
        v |= part << done;
        done += take;
    }
    return v;
}

bool parquet_read_runs(struct bytes *b, unsigned width, uint32_t *numbers, size_t count)
{
    size_t done = 0;
    if (width > 32)
        return false;
    while (done < count && !b->failed) {
        uint64_t head = bytes_varint(b), n = head >> 1;
        if (head & 1) {
            if (n > SIZE_MAX / 8 / 32)
                return false;
            struct str packed = bytes_take(b, n * width);
            for (size_t i = 0; i < n * GROUP && done < count && !b->failed; i++)
                numbers[done++] = (uint32_t)unpack(packed, i * width, width);
        } else {
            uint32_t number = 0;
            struct str text = bytes_take(b, (width + 7) / 8);
            memcpy(&number, text.data, text.size);
            for (; n && done < count && !b->failed; n--)
                numbers[done++] = number;
        }
        if (n == 0 && head <= 1) // neither a run nor a group, so the loop would make no progress
            return false;
    }
    return !b->failed;
}

bool parquet_read_deltas(struct bytes *b, int64_t *numbers, size_t count)
{
    uint64_t block = bytes_varint(b), minis = bytes_varint(b), stored = bytes_varint(b);
    uint64_t last = (uint64_t)unzigzag(bytes_varint(b));
    if (b->failed || stored < count || minis == 0 || minis > 512 || block == 0 ||
        block > (1 << 20) || block % (minis * MINI))
        return count == 0 && !b->failed;
    size_t mini = block / minis, done = 0;
    if (count)
        numbers[done++] = (int64_t)last;
    while (done < count && !b->failed) {
        uint64_t least = (uint64_t)unzigzag(bytes_varint(b));
        struct str widths = bytes_take(b, minis);
        for (size_t m = 0; m < widths.size && done < count; m++) {
            unsigned width = (uint8_t)widths.data[m];
            if (width > 64)
                return false;
            struct str packed = bytes_take(b, mini / 8 * width);
            for (size_t i = 0; i < mini && done < count && !b->failed; i++) {
                last += least + unpack(packed, i * width, width);
                numbers[done++] = (int64_t)last;
            }
        }
    }
    return !b->failed;
}
