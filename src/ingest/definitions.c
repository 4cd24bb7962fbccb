// definitions.c - turns a program's definitions into series and sets of the store.
//
// A definition is copied out of the shared memory before it is checked. After an invalid definition
// the agent reads no more definitions of this program, because the position of each definition
// follows from the size of the one before. Earlier definitions stay in use.
#include "base/array.h"
#include "base/bytes.h"
#include "ingest/ingest_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { DEFINITION_BYTES_MAX = 32 << 10 };

// The store accepts every name that libsonde accepts.
_Static_assert((int)SEGMENT_NAME_MAX == (int)STORE_NAME_MAX &&
                   (int)SEGMENT_UNIT_MAX == (int)STORE_UNIT_MAX,
               "metrics");
_Static_assert((int)SEGMENT_KEY_MAX == (int)STORE_KEY_MAX &&
                   (int)SEGMENT_VALUE_MAX == (int)STORE_VALUE_MAX,
               "tags");
_Static_assert((int)SEGMENT_TAGS_MAX == (int)STORE_LABELS_MAX, "the tags of a series");
_Static_assert((int)SEGMENT_GROUP_MAX == (int)STORE_SET_SERIES_MAX, "a group is a set");
_Static_assert((int)SEGMENT_TEXT_MAX == (int)STORE_TEXT_MAX, "annotations and help texts");

_Static_assert(SEGMENT_MISSING_BITS == STORE_MISSING_BITS, "a value that is missing");

static const struct segment_header *header_of(const struct program *p)
{
    return (const struct segment_header *)(const void *)p->base;
}

static struct str take_u16(struct bytes *b)
{
    return bytes_take(b, bytes_u16(b));
}

static bool take_tags(struct bytes *b, unsigned count, struct store_label tags[SEGMENT_TAGS_MAX])
{
    for (unsigned i = 0; i < count; i++) {
        tags[i].key = take_u16(b);
        tags[i].value = take_u16(b);
    }
    return !b->failed;
}

// Keeps the tags of the process with a copy of their text.
static bool define_process(struct program *p, const struct store_label *tags, size_t count)
{
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += tags[i].key.size + tags[i].value.size;
    char *at = p->tag_text = malloc(size);
    if (!at)
        return false;
    for (size_t i = 0; i < count; i++) {
        p->tags[i].key = (struct str){at, tags[i].key.size};
        memcpy(at, tags[i].key.data, tags[i].key.size);
        at += tags[i].key.size;
        p->tags[i].value = (struct str){at, tags[i].value.size};
        memcpy(at, tags[i].value.data, tags[i].value.size);
        at += tags[i].value.size;
    }
    p->tag_count = count;
    return true;
}

static void define_metric(struct ingest *in, struct program *p, const struct store_metric *m,
                          const struct store_label *tags, size_t count, struct definition *d)
{
    struct store_label all[STORE_LABELS_MAX];
    size_t all_count;
    uint32_t metric;
    d->kind = (uint8_t)m->kind;
    if (m->level > in->level)
        d->state = DEFINITION_OFF;
    else if (ingest_labels(in, p, tags, count, all, &all_count) &&
             store_define_metric(in->store, m, &metric) == 0 &&
             store_define_series(in->store, metric, all, all_count, &d->series) == 0) {
        d->state = DEFINITION_METRIC;
        turns_define(in, p, d->series);
    } else
        d->state = DEFINITION_LIMIT;
}

static bool define_group(struct ingest *in, struct program *p, struct bytes *b,
                         struct definition *d)
{
    uint32_t members = bytes_u32(b);
    if (b->failed || members == 0 || members > SEGMENT_GROUP_MAX ||
        bytes_left(b) < 4 * (size_t)members)
        return false;
    struct group *g = calloc(1, sizeof *g + members * sizeof *g->from);
    uint32_t *series = calloc(members, sizeof *series);
    d->state = DEFINITION_LIMIT;
    d->group = g;
    bool good = g && series;
    for (uint32_t i = 0; good && i < members; i++) {
        uint32_t handle = bytes_u32(b);
        if (handle == 0)
            continue;
        if (handle >= p->definition_count) {
            good = false;
            break;
        }
        const struct definition *m = &p->definitions[handle];
        bool known = m->state != DEFINITION_METRIC;
        for (uint32_t j = 0; !known && j < g->columns; j++)
            known = series[j] == m->series;
        if (known)
            continue;
        g->from[g->columns] = i;
        series[g->columns++] = m->series;
    }
    if (good) {
        g->members = members;
        if (g->columns == 0)
            d->state = DEFINITION_OFF;
        else if (store_define_set(in->store, series, g->columns, &g->set) == 0)
            d->state = DEFINITION_GROUP;
    }
    free(series);
    return good || !g;
}

// Reads one definition from a copy of `size` bytes. Returns false if it is invalid.
static bool define(struct ingest *in, struct program *p, const char *copy, size_t size)
{
    struct bytes b = bytes_of(copy, size);
    bytes_u32(&b);
    uint8_t kind = bytes_u8(&b), level = bytes_u8(&b), what = bytes_u8(&b),
            tag_count = bytes_u8(&b);
    struct definition d = {0};
    struct store_label tags[SEGMENT_TAGS_MAX];
    if ((what == SEGMENT_PROCESS) != (p->definition_count == 0) || tag_count > SEGMENT_TAGS_MAX)
        return false;
    if (what == SEGMENT_GROUP) {
        if (!define_group(in, p, &b, &d)) {
            free(d.group);
            return false;
        }
    } else if (what == SEGMENT_METRIC || what == SEGMENT_PROCESS) {
        struct store_metric m = {.name = take_u16(&b),
                                 .kind = kind == STORE_COUNTER ? STORE_COUNTER : STORE_GAUGE,
                                 .level = level};
        if (!take_tags(&b, tag_count, tags))
            return false;
        m.unit = take_u16(&b);
        m.help = take_u16(&b);
        if (b.failed)
            return false;
        if (what == SEGMENT_METRIC)
            define_metric(in, p, &m, tags, tag_count, &d);
        else if (define_process(p, tags, tag_count))
            d.state = DEFINITION_PROCESS;
        else
            return false;
    } else {
        return false;
    }
    p->definitions[p->definition_count++] = d;
    return true;
}

void program_definitions(struct ingest *in, struct program *p)
{
    // Acquire: the definitions before this end are complete.
    uint64_t end = atomic_load_explicit(&header_of(p)->definitions_bytes, memory_order_acquire);
    if (p->definitions_bad || end == p->definitions_at)
        return;
    const char *area = p->base + p->at.definitions;
    _Alignas(8) char copy[DEFINITION_BYTES_MAX];
    bool good = end <= SEGMENT_DEFINITIONS_BYTES && end > p->definitions_at;
    while (good && p->definitions_at < end) {
        uint32_t size =
            *(const volatile uint32_t *)(const volatile void *)(area + p->definitions_at);
        good = size % 8 == 0 && size >= 8 && size <= sizeof copy &&
               size <= end - p->definitions_at && p->definition_count < SEGMENT_DEFINITIONS_MAX &&
               array_room_zeroed(&p->definitions, &p->definition_capacity, p->definition_count + 1,
                                 sizeof *p->definitions);
        if (!good)
            break;
        memcpy(copy, area + p->definitions_at, size);
        good = define(in, p, copy, size);
        p->definitions_at += size;
    }
    if (!good) {
        p->definitions_bad = true;
        in->stats.dropped_corrupt++;
        program_warn(p, "a definition");
    }
}
