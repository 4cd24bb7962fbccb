#include "store/event_record.h"

#include "base/hash.h"

#include <errno.h>

int event_check(const struct store_event *event)
{
    if (event->kind != STORE_SPAN && event->kind != STORE_ANNOTATION)
        return -EINVAL;
    if (event->end_ns < event->start_ns)
        return -EINVAL;
    if (event->text.size > STORE_TEXT_MAX || event->label_count > STORE_LABELS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < event->label_count; i++)
        if (event->labels[i].key.size > STORE_KEY_MAX ||
            event->labels[i].value.size > STORE_VALUE_MAX)
            return -E2BIG;
    return 0;
}

void event_put(struct buf *out, const struct store_event *event)
{
    size_t start = out->size;
    buf_u64(out, 0);
    buf_u64(out, (uint64_t)event->start_ns);
    buf_u64(out, (uint64_t)event->end_ns);
    buf_u64(out, event->id);
    buf_u64(out, event->parent);
    buf_u8(out, (uint8_t)event->kind);
    buf_varint(out, event->label_count);
    buf_short(out, event->text);
    for (size_t i = 0; i < event->label_count; i++) {
        buf_short(out, event->labels[i].key);
        buf_short(out, event->labels[i].value);
    }
    while (out->size % 8 && !out->failed)
        buf_u8(out, 0);
    if (out->failed)
        return;
    uint32_t head[2] = {(uint32_t)(out->size - start),
                        crc32c(0, out->data + start + 8, out->size - start - 8)};
    memcpy(out->data + start, head, sizeof head);
}

int event_next(struct bytes *in, struct store_event *out,
               struct store_label labels[STORE_LABELS_MAX])
{
    if (bytes_left(in) < 8)
        return 0;
    struct bytes b = *in;
    uint32_t size = bytes_u32(&b), crc = bytes_u32(&b);
    if (!size)
        return 0; // zeros pad the block
    if (size < 48 || size % 8 || size > bytes_left(in) || crc32c(0, b.at, size - 8) != crc)
        return -EBADMSG;
    struct bytes r = bytes_of(b.at, size - 8);
    *out =
        (struct store_event){.start_ns = (int64_t)bytes_u64(&r), .end_ns = (int64_t)bytes_u64(&r)};
    out->id = bytes_u64(&r);
    out->parent = bytes_u64(&r);
    out->kind = bytes_u8(&r) == STORE_SPAN ? STORE_SPAN : STORE_ANNOTATION;
    out->label_count = bytes_varint(&r);
    out->text = bytes_short(&r);
    out->labels = labels;
    if (out->label_count > STORE_LABELS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < out->label_count; i++) {
        labels[i].key = bytes_short(&r);
        labels[i].value = bytes_short(&r);
    }
    if (r.failed)
        return -EBADMSG;
    in->at += size;
    return 1;
}
