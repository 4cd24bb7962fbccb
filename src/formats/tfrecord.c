#include "formats/tfrecord.h"

#include "base/hash.h"

static uint32_t masked(const void *data, size_t size)
{
    uint32_t crc = crc32c(0, data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

size_t tfrecord_begin(struct buf *out)
{
    static const uint8_t head[TFRECORD_HEAD_BYTES] = {0};
    buf_add(out, head, sizeof head);
    return out->size;
}

void tfrecord_end(struct buf *out, size_t begin)
{
    if (out->failed)
        return;
    char *head = out->data + begin - TFRECORD_HEAD_BYTES;
    uint64_t size = out->size - begin;
    memcpy(head, &size, sizeof size);
    uint32_t crc = masked(head, sizeof size);
    memcpy(head + sizeof size, &crc, sizeof crc);
    buf_u32(out, masked(out->data + begin, size));
}

bool tfrecord_size(const uint8_t head[TFRECORD_HEAD_BYTES], uint64_t *size)
{
    uint32_t crc;
    memcpy(size, head, sizeof *size);
    memcpy(&crc, head + sizeof *size, sizeof crc);
    return crc == masked(head, sizeof *size);
}

bool tfrecord_is_whole(struct str record, uint32_t checksum)
{
    return checksum == masked(record.data, record.size);
}
