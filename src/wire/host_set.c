#include "wire/host_set.h"

#include <errno.h>
#include <stdlib.h>

enum { BIT_KNOWN = 1, BIT_ANY = 2, BIT_WITHOUT = 4, BITS = 7 };

static void free_values(struct wire_host_set *h)
{
    for (size_t i = 0; i < h->count; i++)
        free((char *)(uintptr_t)h->values[i].data);
    free(h->values);
    h->values = NULL;
    h->count = 0;
}

void wire_host_set_free(struct wire_host_set *h)
{
    free_values(h);
    *h = (struct wire_host_set){0};
}

static bool has(const struct wire_host_set *h, struct str value)
{
    for (size_t i = 0; i < h->count; i++)
        if (str_eq(h->values[i], value))
            return true;
    return false;
}

static bool become_any(struct wire_host_set *h)
{
    free_values(h);
    h->any = true;
    return true;
}

bool wire_host_set_add(struct wire_host_set *h, struct str value)
{
    if (h->any || has(h, value))
        return false;
    if (!h->values)
        h->values = calloc(WIRE_HOST_SET_MAX, sizeof *h->values);
    bool fits =
        h->values && h->count < WIRE_HOST_SET_MAX && value.size > 0 && value.size <= WIRE_HOST_MAX;
    char *copy = fits ? malloc(value.size) : NULL;
    if (!copy)
        return become_any(h);
    memcpy(copy, value.data, value.size);
    h->values[h->count++] = (struct str){copy, value.size};
    return true;
}

bool wire_host_set_merge(struct wire_host_set *to, const struct wire_host_set *from)
{
    bool changed = from->known && !to->known;
    to->known |= from->known;
    if (from->without && !to->without)
        changed = to->without = true;
    if (from->any && !to->any)
        changed = become_any(to);
    for (size_t i = 0; i < from->count; i++)
        changed |= wire_host_set_add(to, from->values[i]);
    return changed;
}

void wire_host_set_write(struct str node, const struct wire_host_set *h, struct buf *out)
{
    buf_short(out, node);
    buf_u8(out, (uint8_t)((h->known ? BIT_KNOWN : 0) | (h->any ? BIT_ANY : 0) |
                          (h->without ? BIT_WITHOUT : 0)));
    buf_varint(out, h->count);
    for (size_t i = 0; i < h->count; i++)
        buf_short(out, h->values[i]);
}

int wire_host_set_read(struct bytes *rest, struct str room[WIRE_HOST_SET_MAX], struct str *node,
                       struct wire_host_set *out)
{
    *node = bytes_short(rest);
    unsigned bits = bytes_u8(rest);
    uint64_t count = bytes_varint(rest);
    if (rest->failed || node->size == 0 || node->size > WIRE_HOST_MAX || bits > BITS ||
        count > WIRE_HOST_SET_MAX)
        return -EBADMSG;
    *out = (struct wire_host_set){.known = bits & BIT_KNOWN,
                                  .any = bits & BIT_ANY,
                                  .without = bits & BIT_WITHOUT,
                                  .values = room};
    for (; out->count < count; out->count++) {
        room[out->count] = bytes_short(rest);
        if (rest->failed || room[out->count].size == 0 || room[out->count].size > WIRE_HOST_MAX)
            return -EBADMSG;
    }
    return 0;
}
