#include "formats/base64.h"

void base64_add(struct buf *out, struct str bytes)
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *data = (const uint8_t *)bytes.data;
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t n = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t bits = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (n > 2 ? data[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_add_char(out, k <= n ? signs[bits >> (18 - 6 * k) & 63] : '=');
    }
}
