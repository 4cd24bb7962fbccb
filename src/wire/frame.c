#include "wire/frame.h"

#include <errno.h>

enum { FROM_HUB = 1 << WIRE_HUB, FROM_LINK = 1 << WIRE_LINK, FROM_BOTH = FROM_HUB | FROM_LINK };

static const struct wire_frame_row rows[WIRE_TYPE_COUNT] = {
    // This limit also bounds the memory that an unknown peer can take.
    [WIRE_HELLO] = {"HELLO", FROM_LINK, true, 512},
    [WIRE_CHALLENGE] = {"CHALLENGE", FROM_HUB, true, 512},
    [WIRE_PROOF] = {"PROOF", FROM_LINK, true, 32},
    [WIRE_WELCOME] = {"WELCOME", FROM_HUB, false, 8},
    [WIRE_PING] = {"PING", FROM_HUB, false, 16},
    [WIRE_PONG] = {"PONG", FROM_LINK, false, 32},
    [WIRE_ASK] = {"ASK", FROM_HUB, false, WIRE_ASK_MAX},
    [WIRE_CANCEL] = {"CANCEL", FROM_HUB, false, 0},
    [WIRE_CREDIT] = {"CREDIT", FROM_HUB, false, 4},
    [WIRE_PART] = {"PART", FROM_LINK, false, WIRE_PART_MAX},
    [WIRE_MISSING] = {"MISSING", FROM_LINK, false, WIRE_PART_MAX},
    [WIRE_END] = {"END", FROM_LINK, false, 1024},
    [WIRE_BYE] = {"BYE", FROM_BOTH, false, 1024},
    [WIRE_WINDOW] = {"WINDOW", FROM_LINK, false, 1024},
    [WIRE_USE] = {"USE", FROM_HUB, false, 1024},
    [WIRE_LAID] = {"LAID", FROM_LINK, false, 24},
    [WIRE_TAKEN] = {"TAKEN", FROM_HUB, false, 4},
    [WIRE_AGAIN] = {"AGAIN", FROM_LINK, false, WIRE_LAID_MAX},
    [WIRE_HOSTS] = {"HOSTS", FROM_LINK, false, WIRE_HOSTS_BYTES_MAX},
    [WIRE_STREAM] = {"STREAM", FROM_BOTH, false, WIRE_PART_MAX},
    [WIRE_ROOM] = {"ROOM", FROM_BOTH, false, 4},
};

const struct wire_frame_row *wire_frame_row(enum wire_type type)
{
    return (unsigned)type < WIRE_TYPE_COUNT && rows[type].name ? &rows[type] : NULL;
}

void wire_header_write(const struct wire_header *h, uint8_t out[WIRE_HEADER_BYTES])
{
    uint8_t type = (uint8_t)h->type;
    memcpy(out, &h->size, sizeof h->size);
    out[4] = type;
    out[5] = WIRE_VERSION;
    out[6] = out[7] = 0;
    memcpy(out + 8, &h->id, sizeof h->id);
}

int wire_header_read(const uint8_t in[WIRE_HEADER_BYTES], enum wire_side sender, bool opened,
                     struct wire_header *out, struct error *e)
{
    struct bytes b = bytes_of(in, WIRE_HEADER_BYTES);
    uint32_t size = bytes_u32(&b);
    unsigned type = bytes_u8(&b), version = bytes_u8(&b), zero = bytes_u16(&b);
    *out = (struct wire_header){.size = size, .type = (enum wire_type)type, .id = bytes_u32(&b)};
    const struct wire_frame_row *row = wire_frame_row(out->type);
    if (version != WIRE_VERSION && row && zero == 0)
        return error_set(e, -EBADMSG,
                         "the other end speaks version %u of the protocol, this one version %d",
                         version, WIRE_VERSION);
    if (!row || zero != 0)
        return error_set(e, -EBADMSG, "not a frame (type %u)", type);
    if (!(row->from & 1 << sender) || row->opening == opened)
        return error_set(e, -EBADMSG, "a %s at the wrong time", row->name);
    if (size > row->size_max)
        return error_set(e, -EBADMSG, "a %s of %u bytes; %u are the most", row->name, size,
                         row->size_max);
    return 0;
}
