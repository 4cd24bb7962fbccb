#include "wire/window.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

bool window_lay(struct window *w, uint32_t id, struct str data, struct window_piece *out)
{
    uint32_t free = WIRE_WINDOW_BYTES - w->used, to_end = WIRE_WINDOW_BYTES - w->head;
    uint32_t piece = data.size < WIRE_LAID_MAX ? (uint32_t)data.size : WIRE_LAID_MAX;
    uint32_t size = smaller(piece, smaller(free, to_end));
    bool worth = size == piece || size == to_end || size >= WIRE_LAID_MIN;
    if (size == 0 || !worth || w->count == WINDOW_PIECES_MAX)
        return false;
    *out = (struct window_piece){id, w->head, size};
    memcpy(w->memory + w->head, data.data, size);
    w->pieces[(w->first + w->count++) % WINDOW_PIECES_MAX] = *out;
    w->head = (w->head + size) % WIRE_WINDOW_BYTES;
    w->used += size;
    return true;
}

bool window_taken(struct window *w, uint32_t bytes)
{
    while (bytes && w->count) {
        uint32_t size = w->pieces[w->first].size;
        if (size > bytes)
            return false;
        bytes -= size;
        w->used -= size;
        w->first = (w->first + 1) % WINDOW_PIECES_MAX;
        w->count--;
    }
    return bytes == 0;
}
