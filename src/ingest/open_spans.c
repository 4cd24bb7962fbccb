// open_spans.c - a hash table of copies of store_event.
#include "ingest/open_spans.h"

#include "base/hash.h"
#include "base/log.h"
#include "ingest/ingest_internal.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 16 };

struct open_span {
    struct store_event event; // its texts are in the rest of this allocation
    size_t bytes;             // size of this allocation
    struct store_label labels[];
};

static size_t place_of(const struct open_spans *s, uint64_t id)
{
    return id & (s->capacity - 1); // ids are hashes already
}

// Returns the slot with this id, or the free slot for it. The table always has a free slot.
static size_t find(const struct open_spans *s, uint64_t id)
{
    size_t at = place_of(s, id);
    while (s->slots[at] && s->slots[at]->event.id != id)
        at = (at + 1) & (s->capacity - 1);
    return at;
}

static bool reserve(struct open_spans *s)
{
    if ((s->count + 1) * 4 <= s->capacity * 3)
        return true;
    struct open_spans bigger = {NULL, s->count, s->capacity ? s->capacity * 2 : CAPACITY_MIN};
    bigger.slots = calloc(bigger.capacity, sizeof(struct open_span *));
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i])
            bigger.slots[find(&bigger, s->slots[i]->event.id)] = s->slots[i];
    free(s->slots);
    *s = bigger;
    return true;
}

static struct str copied(char **at, struct str text)
{
    struct str copy = {*at, text.size};
    if (text.size)
        memcpy(*at, text.data, text.size);
    *at += text.size;
    return copy;
}

static struct open_span *copy_of(const struct store_event *event)
{
    size_t bytes = sizeof(struct open_span) + event->label_count * sizeof(struct store_label) +
                   event->text.size;
    for (size_t i = 0; i < event->label_count; i++)
        bytes += event->labels[i].key.size + event->labels[i].value.size;
    struct open_span *copy = malloc(bytes);
    if (!copy)
        return NULL;
    char *at = (char *)(copy->labels + event->label_count);
    copy->bytes = bytes;
    copy->event = *event;
    copy->event.text = copied(&at, event->text);
    copy->event.labels = copy->labels;
    for (size_t i = 0; i < event->label_count; i++) {
        struct str key = copied(&at, event->labels[i].key);
        copy->labels[i] = (struct store_label){key, copied(&at, event->labels[i].value)};
    }
    return copy;
}

static void drop(struct ingest *in, struct open_span *span)
{
    in->open_span_bytes -= span->bytes;
    free(span);
}

void open_spans_add(struct ingest *in, struct open_spans *s, const struct store_event *event)
{
    open_spans_remove(in, s, event->id);
    struct open_span *copy =
        in->open_span_bytes < OPEN_SPANS_BYTES_MAX && reserve(s) ? copy_of(event) : NULL;
    if (!copy) {
        if (!in->open_spans_warned)
            log_warning("programs have more open spans than the %d MiB that the agent remembers: "
                        "spans that a killed "
                        "process leaves may stay open",
                        OPEN_SPANS_BYTES_MAX >> 20);
        in->open_spans_warned = true;
        return;
    }
    s->slots[find(s, event->id)] = copy;
    s->count++;
    in->open_span_bytes += copy->bytes;
}

const struct store_event *open_spans_find(const struct open_spans *s, uint64_t id)
{
    const struct open_span *span = s->count ? s->slots[find(s, id)] : NULL;
    return span ? &span->event : NULL;
}

void open_spans_remove(struct ingest *in, struct open_spans *s, uint64_t id)
{
    size_t at = s->count ? find(s, id) : 0, mask = s->capacity - 1;
    if (!s->count || !s->slots[at])
        return;
    drop(in, s->slots[at]);
    s->slots[at] = NULL;
    s->count--;
    // The entries after it, up to the next gap, may be in their slots only because this slot was
    // taken.
    for (size_t next = (at + 1) & mask; s->slots[next]; next = (next + 1) & mask) {
        struct open_span *span = s->slots[next];
        s->slots[next] = NULL;
        s->slots[find(s, span->event.id)] = span;
    }
}

static void end_one(struct ingest *in, const struct open_span *span, int64_t end_ns)
{
    struct store_label labels[STORE_LABELS_MAX];
    struct store_event event = span->event;
    for (size_t i = 0; i < event.label_count; i++)
        labels[i] = event.labels[i];
    event.labels = labels;
    if (event.label_count < STORE_LABELS_MAX)
        labels[event.label_count++] = (struct store_label){STR(STORE_UNFINISHED_TAG), STR("1")};
    event.end_ns = end_ns > event.start_ns ? end_ns : event.start_ns;
    if (store_append_event(in->store, &event) != 0)
        in->stats.dropped_store++;
}

void open_spans_end(struct ingest *in, struct open_spans *s, int64_t end_ns)
{
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i])
            end_one(in, s->slots[i], end_ns);
    open_spans_free(in, s);
}

void open_spans_free(struct ingest *in, struct open_spans *s)
{
    for (size_t i = 0; i < s->capacity; i++)
        if (s->slots[i])
            drop(in, s->slots[i]);
    free(s->slots);
    *s = (struct open_spans){0};
}

static bool take_recorded(const struct store_event *event, void *user)
{
    struct ingest *in = user;
    if (event->kind == STORE_SPAN && event->id && event->end_ns == INT64_MAX &&
        event->label_count <= STORE_LABELS_MAX)
        open_spans_add(in, &in->recorded_spans, event);
    return true;
}

static bool is_of(const struct program *p, uint64_t id)
{
    uint64_t number = hash_u64_inverse(id) ^ p->salt, slot = number >> OPEN_SPANS_SLOT_SHIFT;
    uint64_t nth = number & ((UINT64_C(1) << OPEN_SPANS_SLOT_SHIFT) - 1);
    return slot < p->slots && nth > 0 && nth <= program_spans_begun(p, (uint32_t)slot);
}

struct open_spans *open_spans_recorded(struct ingest *in)
{
    if (in->open_spans && !in->recorded_spans_read)
        in->open_spans(in->recorded_user, take_recorded, in);
    in->recorded_spans_read = true;
    return &in->recorded_spans;
}

void open_spans_resume(struct ingest *in, struct program *p)
{
    struct open_spans *all = open_spans_recorded(in);
    for (size_t i = 0; i < all->capacity; i++) {
        // A removal may move a later span here.
        while (all->slots[i] && is_of(p, all->slots[i]->event.id)) {
            open_spans_add(in, &p->open_spans, &all->slots[i]->event);
            open_spans_remove(in, all, all->slots[i]->event.id);
        }
    }
}
