#include "wire/fetches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct fetches_item {
    struct wire_fetch fetch; // the first member: the fetch is the item
    struct wire_fetches *in;
    struct list_link of_all; // in list wire_fetches.items
    struct wire_header header;
    uint64_t number; // of a piece
    uint8_t mac[WIRE_MAC_BYTES];
    char *data;    // header.size bytes
    uint32_t have; // number of received bytes: all or none
    bool piece, fetching;
};

static struct fetches_item *item_of(struct list_link *link)
{
    return LIST_OF(link, struct fetches_item, of_all);
}

// Returns the oldest item, or NULL if there is none.
static struct fetches_item *first_of(const struct wire_fetches *f)
{
    return list_empty(&f->items) ? NULL : item_of(f->items.next);
}

static bool is_whole(const struct fetches_item *i)
{
    return i->have == i->header.size && !i->fetching;
}

static void free_item(struct wire_fetches *f, struct fetches_item *i)
{
    if (i->fetching)
        f->bulk->row->give_up(&i->fetch);
    free(i->data);
    free(i);
}

static struct fetches_item *new_item(struct wire_fetches *f, const struct wire_header *h,
                                     size_t size)
{
    struct fetches_item *i = calloc(1, sizeof *i);
    char *data = malloc(size + 1);
    if (!i || !data) {
        free(i);
        free(data);
        return NULL;
    }
    *i = (struct fetches_item){.in = f, .header = *h, .data = data};
    list_append(&f->items, &i->of_all);
    return i;
}

int wire_fetches_begin(struct wire_fetches *f, struct wire_bulk *bulk, struct str description,
                       const uint8_t key[WIRE_KEY_BYTES], struct error *e)
{
    f->bulk = bulk;
    list_init(&f->items);
    f->key = malloc(sizeof *f->key);
    if (!f->key)
        return error_set(e, -ENOMEM, "no memory");
    wire_mac_key_set(f->key, key);
    return bulk->row->meet(bulk, description, &f->peer, e);
}

void wire_fetches_end(struct wire_fetches *f)
{
    LIST_EACH (link, &f->items)
        free_item(f, item_of(link));
    if (f->delivered)
        free_item(f, f->delivered);
    if (f->peer)
        f->bulk->row->part(f->peer);
    free(f->key);
    *f = (struct wire_fetches){0};
}

// ---- pieces ----

static void on_fetched(struct wire_fetch *fetch, int status, const char *data)
{
    struct fetches_item *i = (struct fetches_item *)fetch;
    struct wire_fetches *f = i->in;
    uint8_t mac[WIRE_MAC_BYTES];
    char why[sizeof f->why];
    i->fetching = false;
    if (status == 0) {
        wire_mac(f->key, i->number, (struct str){0}, (struct str){data, fetch->size}, mac);
        if (wire_mac_equal(mac, i->mac)) {
            memcpy(i->data, data, fetch->size);
            i->have = fetch->size;
        } else {
            wire_fetches_break(f, "what was fetched is not what was laid there");
        }
    } else {
        snprintf(why, sizeof why, "fetching failed: %s", strerror(-status));
        wire_fetches_break(f, why);
    }
    f->news(f->user);
}

int wire_fetches_laid(struct wire_fetches *f, const struct wire_header *h,
                      const struct wire_laid *laid)
{
    if (laid->size == 0 || laid->size > WIRE_WINDOW_BYTES - f->window_bytes)
        return -EBADMSG;
    struct fetches_item *i = new_item(f, h, laid->size);
    if (!i)
        return -ENOMEM;
    f->window_bytes += laid->size;
    i->piece = true;
    i->number = f->laid++;
    i->header.type = WIRE_PART;
    i->header.size = laid->size;
    memcpy(i->mac, laid->mac, sizeof i->mac);
    i->fetch = (struct wire_fetch){
        .peer = f->peer, .offset = laid->offset, .size = laid->size, .done = on_fetched};
    if (!f->broken) {
        i->fetching = true;
        f->bulk->row->fetch(&i->fetch);
    }
    return 0;
}

void wire_fetches_break(struct wire_fetches *f, const char *why)
{
    if (f->broken)
        return;
    f->broken = true;
    snprintf(f->why, sizeof f->why, "%s", why);
    LIST_EACH (link, &f->items) {
        struct fetches_item *i = item_of(link);
        if (i->fetching)
            f->bulk->row->give_up(&i->fetch);
        i->fetching = false;
    }
}

void wire_fetches_refill(struct wire_fetches *f, bool trial)
{
    struct list_link *tried = trial ? list_take_first(&f->items) : NULL;
    if (tried) {
        f->window_bytes -= item_of(tried)->header.size;
        free_item(f, item_of(tried));
    }
    LIST_EACH (link, &f->items)
        if (item_of(link)->piece)
            item_of(link)->have = 0;
}

int wire_fetches_again(struct wire_fetches *f, const struct wire_header *h, struct str payload)
{
    struct fetches_item *i = NULL;
    LIST_EACH (link, &f->items)
        if (item_of(link)->piece && !is_whole(item_of(link))) {
            i = item_of(link);
            break;
        }
    if (!f->broken || !i || i->header.id != h->id || i->header.size != payload.size)
        return -EBADMSG;
    memcpy(i->data, payload.data, payload.size);
    i->have = i->header.size;
    return 0;
}

// ---- delivery in order ----

int wire_fetches_hold(struct wire_fetches *f, const struct wire_header *h, struct str payload,
                      bool *kept)
{
    *kept = !list_empty(&f->items);
    if (!*kept)
        return 0;
    if (payload.size > FETCHES_HELD_MAX - f->held)
        return -ENOBUFS;
    struct fetches_item *i = new_item(f, h, payload.size);
    if (!i)
        return -ENOMEM;
    if (payload.size)
        memcpy(i->data, payload.data, payload.size);
    i->have = (uint32_t)payload.size;
    f->held += payload.size;
    return 0;
}

bool wire_fetches_next(struct wire_fetches *f, struct wire_header *h, struct str *payload)
{
    if (f->delivered)
        free_item(f, f->delivered);
    struct fetches_item *i = first_of(f);
    f->delivered = i && is_whole(i) ? i : NULL;
    if (!f->delivered)
        return false;
    list_remove(&i->of_all);
    if (i->piece) {
        f->window_bytes -= i->header.size;
        f->taken += i->header.size;
    } else {
        f->held -= i->header.size;
    }
    *h = i->header;
    *payload = (struct str){i->data, i->header.size};
    return true;
}

uint32_t wire_fetches_taken(struct wire_fetches *f, bool whole)
{
    uint32_t taken =
        whole || f->window_bytes == 0 || f->taken >= WIRE_WINDOW_BYTES / 2 ? f->taken : 0;
    f->taken -= taken;
    return taken;
}
