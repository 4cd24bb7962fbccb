#include "formats/snappy.h"

#include "base/bytes.h"

static bool copy_back(char *out, size_t done, size_t size, uint64_t offset, uint64_t length)
{
    if (offset == 0 || offset > done || length > size - done)
        return false;
    // byte by byte: source and target may overlap, which repeats the source
    for (uint64_t i = 0; i < length; i++)
        out[done + i] = out[done + i - offset];
    return true;
}

bool snappy_read(struct str packed, char *out, size_t size)
{
    struct bytes b = bytes_of(packed.data, packed.size);
    size_t done = 0;
    if (bytes_varint(&b) != size)
        return false;
    while (bytes_left(&b) && !b.failed) {
        uint8_t tag = bytes_u8(&b);
        uint64_t length = (tag >> 2) + 1u, offset = 0;
        if (tag % 4 == 0) {
            if (length > 60) {
                struct str text = bytes_take(&b, length - 60);
                length = 0;
                memcpy(&length, text.data, text.size);
                length++;
            }
            struct str literal = bytes_take(&b, length);
            if (b.failed || length > size - done)
                return false;
            memcpy(out + done, literal.data, literal.size);
        } else {
            if (tag % 4 == 1) {
                length = 4 + (tag >> 2 & 7u);
                offset = (uint64_t)(tag >> 5) << 8 | bytes_u8(&b);
            } else {
                offset = tag % 4 == 2 ? bytes_u16(&b) : bytes_u32(&b);
            }
            if (b.failed || !copy_back(out, done, size, offset, length))
                return false;
        }
        done += length;
    }
    return !b.failed && done == size;
}
