#include "ask/labels_wire.h"

#include <errno.h>

void ask_labels_write(const struct store_label *labels, size_t count, struct buf *out)
{
    buf_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        buf_short(out, labels[i].key);
        buf_short(out, labels[i].value);
    }
}

int ask_labels_read(struct bytes *b, struct arena *arena, size_t most, struct store_label **out,
                    size_t *count)
{
    uint64_t n = bytes_varint(b);
    if (b->failed || n > most)
        return -EBADMSG;
    struct store_label *labels = arena_array(arena, (size_t)n, sizeof *labels);
    if (!labels)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        labels[i] = (struct store_label){.key = bytes_short(b)};
        labels[i].value = bytes_short(b);
        if (b->failed)
            return -EBADMSG;
    }
    *out = labels;
    *count = (size_t)n;
    return 0;
}
