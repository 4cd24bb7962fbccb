#include "report/png.h"

#include <math.h>
#include <stdlib.h>
#include <zlib.h>

// Dark blue to yellow: brightness increases, and colour-blind people can distinguish the colours.
static const uint8_t anchors[][3] = {{0x30, 0x12, 0x50},
                                     {0x3b, 0x52, 0x8b},
                                     {0x21, 0x91, 0x8c},
                                     {0x5e, 0xc9, 0x62},
                                     {0xfd, 0xe7, 0x25}};

uint8_t png_colour(double value)
{
    if (isnan(value))
        return PNG_MISSING;
    value = value < 0 ? 0 : value > 1 ? 1 : value;
    return (uint8_t)(value * (PNG_COLOURS - 1) + 0.5);
}

uint32_t png_rgb(uint8_t colour)
{
    if (colour >= PNG_COLOURS)
        return 0;
    enum { PARTS = sizeof anchors / sizeof *anchors - 1 };
    double at = (double)colour / (PNG_COLOURS - 1) * PARTS;
    size_t i = at >= PARTS ? PARTS - 1 : (size_t)at;
    uint32_t rgb = 0;
    for (size_t k = 0; k < 3; k++) {
        double from = anchors[i][k], to = anchors[i + 1][k];
        rgb = rgb << 8 | (uint32_t)(from + (to - from) * (at - (double)i) + 0.5);
    }
    return rgb;
}

static void add_u32(struct buf *b, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                              (uint8_t)value};
    buf_add(b, bytes, sizeof bytes);
}

// Appends a chunk: length, type, data, checksum of type and data.
static void add_chunk(struct buf *b, const char type[4], const void *data, size_t size)
{
    add_u32(b, (uint32_t)size);
    size_t from = b->size;
    buf_add(b, type, 4);
    buf_add(b, data, size);
    if (!b->failed)
        add_u32(b, (uint32_t)crc32(0, (const Bytef *)b->data + from, (uInt)(size + 4)));
}

static void add_header(struct buf *b, size_t width, size_t height)
{
    struct buf header = {0};
    uint8_t palette[3 * (PNG_COLOURS + 1)], alpha[PNG_COLOURS + 1];
    add_u32(&header, (uint32_t)width);
    add_u32(&header, (uint32_t)height);
    // 8 bits with a palette; deflated, without filter, not interlaced
    buf_add(&header, "\x08\x03\0\0", 5);
    buf_add(b, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(b, "IHDR", header.data, header.size);
    b->failed |= header.failed;
    buf_free(&header);
    for (int i = 0; i <= PNG_COLOURS; i++) {
        uint32_t rgb = png_rgb((uint8_t)i);
        palette[3 * i] = (uint8_t)(rgb >> 16);
        palette[3 * i + 1] = (uint8_t)(rgb >> 8);
        palette[3 * i + 2] = (uint8_t)rgb;
        alpha[i] = i == PNG_MISSING ? 0 : 255;
    }
    add_chunk(b, "PLTE", palette, sizeof palette);
    add_chunk(b, "tRNS", alpha, sizeof alpha);
}

static void add_base64(struct buf *out, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        buf_add_char(out, digits[bits >> 18]);
        buf_add_char(out, digits[bits >> 12 & 63]);
        buf_add_char(out, left > 1 ? digits[bits >> 6 & 63] : '=');
        buf_add_char(out, left > 2 ? digits[bits & 63] : '=');
    }
}

void png_write_base64(const uint8_t *pixels, size_t width, size_t height, struct buf *out)
{
    struct buf raw = {0}, png = {0};
    for (size_t i = 0; i < height; i++) {
        buf_add_char(&raw, 0); // no filter
        buf_add(&raw, pixels + i * width, width);
    }
    uLongf size = compressBound((uLong)raw.size);
    uint8_t *deflated = malloc(size);
    if (!deflated || raw.failed ||
        compress2(deflated, &size, (const Bytef *)raw.data, (uLong)raw.size, 9) != Z_OK) {
        out->failed = true;
    } else {
        add_header(&png, width, height);
        add_chunk(&png, "IDAT", deflated, size);
        add_chunk(&png, "IEND", NULL, 0);
        out->failed |= png.failed;
        if (!png.failed)
            add_base64(out, (const uint8_t *)png.data, png.size);
    }
    free(deflated);
    buf_free(&raw);
    buf_free(&png);
}
