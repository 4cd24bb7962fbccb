// fuzz_wire_pieces.h - a node that puts pieces of its answers into its window, as random orders of
// the other side say.
#ifndef SONDE_TESTS_FUZZ_FUZZ_WIRE_PIECES_H
#define SONDE_TESTS_FUZZ_FUZZ_WIRE_PIECES_H

#include "wire/fetches.h"

#include <errno.h>
#include <stdlib.h>

static struct wire_fetch *asked_for[8]; // pending fetches

static int meet_anybody(struct wire_bulk *b, struct str description, struct wire_bulk_peer **out,
                        struct error *e)
{
    (void)e;
    *out = (struct wire_bulk_peer *)b;
    return description.size ? 0 : -EBADMSG;
}

static void part_nobody(struct wire_bulk_peer *p)
{
    (void)p;
    for (size_t i = 0; i < sizeof asked_for / sizeof *asked_for; i++)
        if (asked_for[i])
            abort();
}

static void remember(struct wire_fetch *f)
{
    size_t i = 0;
    while (i < sizeof asked_for / sizeof *asked_for && asked_for[i])
        i++;
    f->slot = (int)i;
    if (i < sizeof asked_for / sizeof *asked_for)
        asked_for[i] = f;
}

static void forget(struct wire_fetch *f)
{
    if ((size_t)f->slot < sizeof asked_for / sizeof *asked_for)
        asked_for[f->slot] = NULL;
}

static void no_news(void *user)
{
    ++*(int *)user;
}

// The input has commands: pieces, frames after them, ends of fetches, in any order. The output is
// in order, and never longer than announced.
static void lay_pieces(struct str orders)
{
    static const struct wire_bulk_row row = {
        .meet = meet_anybody, .part = part_nobody, .fetch = remember, .give_up = forget};
    static char bytes[WIRE_LAID_MAX];
    static const uint8_t key[WIRE_KEY_BYTES];
    struct wire_mac_key macs;
    struct wire_bulk bulk = {.row = &row};
    struct wire_fetches f = {0};
    struct error e;
    int news = 0;
    uint32_t next = 0, handed_on = 0;
    f.news = no_news;
    f.user = &news;
    if (wire_fetches_begin(&f, &bulk, STR("here"), key, &e))
        abort();
    wire_mac_key_set(&macs, key);
    struct bytes b = bytes_of(orders.data, orders.size);
    bool refilled = false;
    while (bytes_left(&b)) {
        uint8_t order = bytes_u8(&b);
        struct wire_header h = {.type = WIRE_PART, .id = next};
        struct wire_laid laid = {.size = 1U + order * 7U};
        struct str payload = {bytes, order};
        bool kept = false;
        struct wire_fetch *fetch = asked_for[order >> 3 & 7];
        switch (order & 3) {
        case 0:
            wire_mac(&macs, f.laid, (struct str){0}, (struct str){bytes, laid.size}, laid.mac);
            next += wire_fetches_laid(&f, &h, &laid) == 0;
            break;
        case 1:
            h.size = order;
            if (wire_fetches_hold(&f, &h, payload, &kept) == 0)
                next += kept;
            break;
        case 2:
            if (!fetch)
                break;
            forget(fetch);
            fetch->done(fetch, order & 4 ? -EIO : 0, order & 4 ? NULL : bytes);
            break;
        default:
            h.id = handed_on;
            payload.size = 1U + (order & ~3U) * 7U;
            wire_fetches_again(&f, &h, payload);
        }
        while (wire_fetches_next(&f, &h, &payload))
            if (h.id != handed_on++ || payload.size != h.size)
                abort();
        if (f.broken && !refilled)
            wire_fetches_refill(&f, false);
        refilled = f.broken;
        wire_fetches_taken(&f, order & 4);
    }
    wire_fetches_end(&f);
}

#endif
