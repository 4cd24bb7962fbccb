// column.c - finds, checks, copies and decodes one series' part of a block. tail.c does this for
// tails.
#include "base/hash.h"
#include "base/search.h"
#include "store/codec_table.h"
#include "store/one_each.h"
#include "store/overflow.h"
#include "store/reader.h"
#include "store/unpack.h"

#include <errno.h>
#include <stdlib.h>

enum {
    // bytes of a block that are copied and checksummed at a time: they fit into the nearest cache
    CHECK_PIECE_BYTES = 32 << 10,
    // upper bound of an unpacked part; follows from the limits of its values and columns
    PART_RAW_MAX = 256 << 20,
};

// ---- Copies ----

// Copies two words at a time. Each is read only once, because the access is volatile.
typedef uint64_t word_pair __attribute__((vector_size(16), aligned(8), may_alias));

void reader_copy_words(void *to, const uint8_t *from, size_t bytes)
{
    size_t i = 0;
    for (; i + sizeof(word_pair) <= bytes; i += sizeof(word_pair)) {
        word_pair w = *(const volatile word_pair *)(const void *)(from + i);
        memcpy((char *)to + i, &w, sizeof w);
    }
    if (i + sizeof(uint64_t) <= bytes) {
        uint64_t w = __atomic_load_n((const uint64_t *)(const void *)(from + i), __ATOMIC_RELAXED);
        memcpy((char *)to + i, &w, sizeof w);
    }
}

// Copies bytes of a block. The copy is used only if the generation is unchanged afterwards, so the
// words may be read in pieces of any width. The barrier makes later code read the copy, even if the
// compiler can see through memcpy.
static void copy_block(void *to, const uint8_t *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
}

// Checks a copy of a block. The writer raises the generation before it overwrites the block's
// place, so with an unchanged generation the copy has the old content. If the page of the table
// entry is lost, reading the generation sets `lost`. If only the end of the block is lost, in the
// last page of the file, the witness shows it.
static int standing(const struct extent_entry *entry, uint32_t generation, struct remains *remains,
                    uint64_t end)
{
    // Acquire: the bytes are read before the generation. If the generation is still the old one,
    // the writer had not begun to overwrite them (extent_reuse).
    atomic_thread_fence(memory_order_acquire);
    bool same = __atomic_load_n(&entry->generation, __ATOMIC_RELAXED) == generation;
    // Acquire: the witness's mapping was made before its address was stored.
    const volatile uint8_t *witness = atomic_load_explicit(&remains->witness, memory_order_acquire);
    if (*witness != atomic_load_explicit(&remains->value, memory_order_relaxed))
        remains_look(remains);
    uint64_t lost = map_guard_lost(&remains->lost);
    return same && lost >= end ? 0 : lost == MAP_GUARD_NOTHING_LOST ? -ESTALE : -EBADMSG;
}

int block_standing(const struct block_ref *b)
{
    return standing(b->entry, b->generation, b->remains, b->offset + b->header.size);
}

int tail_standing(const struct view_tail *t)
{
    return standing(t->entry, t->generation, t->remains, t->offset + t->size);
}

const uint8_t *block_copy(struct store_snapshot *s, struct block_ref *b, size_t from, size_t size,
                          int *rc)
{
    if (from > b->header.size || size > b->header.size - from) {
        *rc = -EBADMSG;
        return NULL;
    }
    // Copy whole words, from up to 7 bytes before. Blocks are aligned at both ends.
    size_t early = from % 8, words = (early + size + 7) / 8 * 8;
    s->scratch.size = 0;
    if (!buf_reserve(&s->scratch, words + 8)) {
        s->scratch.failed = false;
        *rc = -ENOMEM;
        return NULL;
    }
    copy_block(s->scratch.data, b->bytes + from - early, words);
    *rc = block_standing(b);
    if (*rc == -EBADMSG)
        reader_report(s->reader, b->offset, b->header.size, "a block that was cut off");
    return *rc ? NULL : (const uint8_t *)s->scratch.data + early;
}

// ---- Checksums ----

static uint32_t crc_of(const uint8_t *from, size_t skip, size_t size)
{
    uint64_t piece[CHECK_PIECE_BYTES / 8];
    uint32_t crc = 0;
    while (size) {
        size_t n = size + skip < sizeof piece ? size : sizeof piece - skip;
        copy_block(piece, from, (skip + n + 7) / 8 * 8);
        crc = crc32c(crc, (const uint8_t *)piece + skip, n);
        from += skip + n;
        skip = 0;
        size -= n;
    }
    return crc;
}

// Computes the checksum of bytes from..from+size of a block; `from` need not be aligned.
static uint32_t crc_part(const struct block_ref *b, size_t from, size_t size)
{
    size_t skip = from % 8;
    return crc_of(b->bytes + from - skip, skip, size);
}

static int checked(struct store_reader *r, struct block_ref *b, bool ok, unsigned flag,
                   const char *what)
{
    int rc = block_standing(b);
    if (rc == -ESTALE)
        return rc;
    ok = ok && !rc;
    __atomic_fetch_or(&b->state, ok ? flag : BLOCK_DAMAGED, __ATOMIC_RELAXED);
    if (!ok && r)
        reader_report(r, b->offset, b->header.size, what);
    return ok ? 0 : -EBADMSG;
}

int block_check(struct store_reader *r, struct block_ref *b, bool data)
{
    const struct block_header *h = &b->header;
    unsigned state = __atomic_load_n(&b->state, __ATOMIC_RELAXED);
    if (state & BLOCK_DAMAGED) {
        if (r)
            reader_report(r, b->offset, h->size, "a block");
        return -EBADMSG;
    }
    if (state & (data ? BLOCK_DATA_INTACT : BLOCK_HEAD_INTACT))
        return 0;
    if (r)
        prefetch_bytes(&r->prefetch, r->fd, b->offset,
                       data ? h->size : sizeof *h + h->directory_bytes);
    if (!(state & BLOCK_HEAD_INTACT)) {
        struct block_header now;
        reader_copy_words(&now, b->bytes, sizeof now);
        bool ok = !memcmp(&now, h, sizeof now) &&
                  crc_part(b, sizeof *h, h->directory_bytes) == h->directory_crc;
        int rc = checked(r, b, ok, BLOCK_HEAD_INTACT, "the directory of a block");
        if (rc)
            return rc;
    }
    if (!data)
        return 0;
    bool ok = crc_part(b, sizeof *h + h->directory_bytes, h->data_bytes) == h->data_crc;
    return checked(r, b, ok, BLOCK_DATA_INTACT, "a block");
}

// Handles contents that are malformed although their checksum is right.
static int malformed(struct store_snapshot *s, struct block_ref *b)
{
    return checked(s->reader, b, false, 0, "a block (well kept, but written wrongly)");
}

// ---- Directories ----

int cold_directory_of(struct store_snapshot *s, struct block_ref *b, struct cold_directory **out)
{
    // Acquire: the thread that stored the pointer had filled the directory.
    *out = __atomic_load_n(&b->directory, __ATOMIC_ACQUIRE);
    if (*out)
        return 0;
    int rc;
    const uint8_t *stored = block_copy(s, b, sizeof b->header, b->header.directory_bytes, &rc);
    if (rc)
        return rc;
    struct cold_directory *d = NULL, *none = NULL;
    rc = cold_directory_open(&b->header, stored, &d);
    if (rc)
        return rc == -EBADMSG ? malformed(s, b) : rc;
    // Another thread may have stored its directory first. Release: our directory is filled before
    // readers see its pointer. Acquire: the other thread's directory is filled before we see its
    // pointer.
    if (!__atomic_compare_exchange_n(&b->directory, &none, d, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        cold_directory_free(d);
        d = none;
    }
    *out = d;
    return 0;
}

static int cold_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t id,
                       struct block_entry *out)
{
    struct cold_directory *d;
    int rc = cold_directory_of(s, b, &d);
    if (rc)
        return rc;
    size_t i = id;
    if (b->header.kind == BLOCK_POINTS && d->entry_count) {
        uint32_t first = d->entries[0].series, last = d->entries[d->entry_count - 1].series;
        if (id < first || id > last)
            return -ENOENT;
        // Usually, all series from the first one to this one are in the block.
        i -= first;
        if (i >= d->entry_count || d->entries[i].series != id)
            SEARCH_FIRST(i, d->entry_count, d->entries[i].series >= id);
    }
    if (i >= d->entry_count || !d->entries[i].count ||
        (b->header.kind == BLOCK_POINTS && d->entries[i].series != id))
        return -ENOENT;
    *out = d->entries[i];
    return 0;
}

static uint32_t word_at(const uint8_t *p)
{
    return __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
}

static int point_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t series,
                        struct block_entry *out)
{
    const struct block_header *h = &b->header;
    uint32_t place, size = one_each_point_bytes(h);
    bool there = one_each_find(h, b->bytes + sizeof *h, series, &place);
    int rc = block_standing(b);
    if (rc || !there)
        return rc ? rc : -ENOENT;
    // The time stamp is in the data, so check the data.
    rc = block_check(s->reader, b, true);
    if (rc)
        return rc;
    const uint8_t *point =
        block_copy(s, b, sizeof *h + h->directory_bytes + place * (size_t)size, size, &rc);
    if (rc)
        return rc;
    rc = block_entry_of_point(h, series, point, out);
    out->offset = place * size;
    out->size = size;
    return rc == -EBADMSG ? malformed(s, b) : rc;
}

static int group_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t series,
                        struct block_entry *out)
{
    const struct block_header *h = &b->header;
    const uint8_t *ids = b->bytes + sizeof *h;
    size_t i;
    SEARCH_FIRST(i, h->columns, word_at(ids + 4 * i) >= series);
    bool there = i < h->columns && word_at(ids + 4 * i) == series;
    int rc = block_standing(b);
    if (rc || !there)
        return rc ? rc : -ENOENT;
    const uint8_t *offsets = ids + 4 * ((size_t)h->columns + i);
    uint32_t from = word_at(offsets), to = word_at(offsets + 4);
    rc = block_standing(b);
    if (rc)
        return rc;
    if (from > to || to > h->data_bytes)
        return malformed(s, b);
    // Summaries are in the data, so check the data.
    rc = block_check(s->reader, b, true);
    if (rc)
        return rc;
    size_t head = sizeof(struct group_head) + sizeof(struct group_summary), size = to - from;
    size_t data_at = sizeof *h + h->directory_bytes;
    const uint8_t *record = block_copy(s, b, data_at + from, size < head ? size : head, &rc);
    if (rc)
        return rc;
    rc = block_entry_of_group(h, series,
                              (struct str){(const char *)record, size < head ? size : head}, out);
    out->offset = from;
    out->size = to - from;
    return rc == -EBADMSG ? malformed(s, b) : rc;
}

int block_lookup(struct store_snapshot *s, struct block_ref *b, uint32_t id,
                 struct block_entry *out)
{
    const struct block_header *h = &b->header;
    int rc = block_check(s->reader, b, false);
    if (rc)
        return rc;
    if (h->flags & BLOCK_COLD)
        return cold_lookup(s, b, id, out);
    if (h->flags & BLOCK_ONE_EACH)
        return point_lookup(s, b, id, out);
    if (h->kind == BLOCK_POINTS)
        return group_lookup(s, b, id, out);
    if (id >= h->columns)
        return -ENOENT;
    struct column_entry stored;
    reader_copy_words(&stored, b->bytes + sizeof *h + 8 + id * sizeof stored, sizeof stored);
    rc = block_standing(b);
    if (rc)
        return rc;
    rc = block_entry_of_column(h, &stored, out);
    return rc == -EBADMSG ? malformed(s, b) : rc;
}

// A merge relies on the order of times: all times of a column come from decoders that check it, or
// are chosen from such times.
static bool times_span(const struct block_header *h, const int64_t *t)
{
    return t[0] == h->first_ns && t[h->rows - 1] == h->last_ns;
}

static int ascending_times(const struct codec_table *table, size_t column, size_t n, int64_t *out)
{
    int rc = codec_table_times(table, column, out);
    return rc ? rc : codec_ascending(out, n) ? 0 : -EBADMSG;
}

// ---- Hot blocks ----

static int hot_times(struct store_snapshot *s, struct block_ref *b, struct cache_item **pin)
{
    *pin = cache_find(&s->cache, CACHE_TIMES, b, 0);
    if (*pin)
        return 0;
    const struct block_header *h = &b->header;
    uint32_t time_bytes = word_at(b->bytes + sizeof *h);
    int rc = block_standing(b);
    if (rc)
        return rc;
    const uint8_t *stored = block_copy(s, b, sizeof *h + h->directory_bytes, time_bytes, &rc);
    int64_t *t = rc ? NULL : malloc(h->rows * sizeof *t);
    if (rc || !t)
        return rc == -EBADMSG ? malformed(s, b) : rc ? rc : -ENOMEM;
    if (codec_decode_ascending_times(stored, time_bytes, h->rows, t) || !times_span(h, t)) {
        free(t);
        return malformed(s, b);
    }
    *pin = cache_add(&s->cache, (struct cache_item){.of = b,
                                                    .kind = CACHE_TIMES,
                                                    .bytes = h->rows * sizeof *t,
                                                    .count = h->rows,
                                                    .data = t});
    return *pin ? 0 : -ENOMEM;
}

// Chooses the time stamps of a column. Returns 0 if they are those of the whole block (pins[0]); 1
// if they are those of some rows, and the caller fills own_t; or -ENOMEM.
static int choose_times(struct store_snapshot *s, size_t count, bool partial, struct column *out)
{
    if (!partial) {
        out->t = out->pins[0]->data;
        return 0;
    }
    out->t = out->own_t = buffer_take(&s->buffers, count);
    return out->own_t ? 1 : -ENOMEM;
}

static int hot_load(struct store_snapshot *s, struct block_ref *b, const struct block_entry *e,
                    struct column *out)
{
    const struct block_header *h = &b->header;
    bool partial = h->kind == BLOCK_POINTS || e->count < h->rows;
    int rc = h->kind == BLOCK_SET ? hot_times(s, b, &out->pins[0]) : 0;
    if (rc)
        return rc;
    const uint8_t *stored =
        block_copy(s, b, sizeof *h + h->directory_bytes + e->offset, e->size, &rc);
    if (rc)
        return rc;
    struct str column = {(const char *)stored, e->size};
    if (block_decode_values(h, e, column, out->own_v))
        return malformed(s, b);
    int more = choose_times(s, e->count, partial, out);
    if (more <= 0)
        return more;
    rc = h->kind == BLOCK_POINTS
             ? block_decode_group_times(h, e, column, out->own_t)
             : block_pick_times(stored, out->pins[0]->data, h->rows, e->count, out->own_t);
    return rc ? malformed(s, b) : 0;
}

// ---- Cold blocks ----

// Takes memory for an unpacked part, or room in the overflow if the cache has no more memory.
static uint8_t *part_place(struct store_snapshot *s, size_t size, bool *in_overflow)
{
    uint8_t *place = cache_is_full(&s->cache, size) ? overflow_take(s->cache.overflow, size) : NULL;
    *in_overflow = place != NULL;
    return place ? place : malloc(size + 1);
}

static void part_place_free(struct store_snapshot *s, uint8_t *place, bool in_overflow)
{
    if (in_overflow)
        overflow_give_back(s->cache.overflow, place);
    else
        free(place);
}

int cold_part(struct store_snapshot *s, struct block_ref *b, uint32_t number,
              struct cache_item **pin)
{
    *pin = cache_find(&s->cache, CACHE_PART, b, number);
    int rc = *pin && !(*pin)->table ? cache_open_table(&s->cache, *pin) : 0;
    if (rc)
        cache_unpin(*pin);
    if (rc || *pin)
        return rc;
    struct cold_directory *d;
    rc = cold_directory_of(s, b, &d);
    if (rc)
        return rc;
    struct cold_part part = d->parts[number];
    const uint8_t *stored = block_copy(
        s, b, sizeof b->header + b->header.directory_bytes + part.offset, part.size, &rc);
    if (rc)
        return rc;
    if (part.raw_size > PART_RAW_MAX)
        return malformed(s, b);
    bool in_overflow;
    uint8_t *raw = part_place(s, part.raw_size, &in_overflow);
    if (!raw)
        return -ENOMEM;
    struct codec_table *table = NULL;
    rc = unpack(raw, part.raw_size, stored, part.size);
    if (!rc)
        rc = codec_table_open(raw, part.raw_size, &table);
    if (rc) {
        part_place_free(s, raw, in_overflow);
        return rc == -EBADMSG ? malformed(s, b) : rc;
    }
    *pin = cache_add(&s->cache, (struct cache_item){.of = b,
                                                    .part = number,
                                                    .kind = CACHE_PART,
                                                    .bytes = in_overflow ? codec_table_bytes(table)
                                                                         : part.raw_size,
                                                    .count = part.raw_size,
                                                    .data = raw,
                                                    .table = table,
                                                    .in_overflow = in_overflow});
    return *pin ? 0 : -ENOMEM;
}

static bool column_fits(const struct codec_table *table, size_t column, size_t rows)
{
    return column < codec_table_columns(table) && codec_table_rows(table, column) == rows;
}

// Returns the time stamps of a part of a set block.
static int cold_times(struct store_snapshot *s, struct block_ref *b,
                      const struct codec_table *table, const struct block_entry *e,
                      struct cache_item **pin)
{
    *pin = cache_find(&s->cache, CACHE_TIMES, b, e->part);
    if (*pin)
        return 0;
    uint32_t rows = b->header.rows;
    if (!column_fits(table, e->time_column, rows))
        return malformed(s, b);
    int64_t *t = malloc(rows * sizeof *t);
    if (!t)
        return -ENOMEM;
    if (ascending_times(table, e->time_column, rows, t) || !times_span(&b->header, t)) {
        free(t);
        return malformed(s, b);
    }
    *pin = cache_add(&s->cache, (struct cache_item){.of = b,
                                                    .part = e->part,
                                                    .kind = CACHE_TIMES,
                                                    .bytes = rows * sizeof *t,
                                                    .count = rows,
                                                    .data = t});
    return *pin ? 0 : -ENOMEM;
}

// Copies the time stamps of the rows that the presence column marks with 1.
static int cold_pick(struct store_snapshot *s, const struct codec_table *table,
                     const struct block_entry *e, const int64_t *all, uint32_t rows, int64_t *out)
{
    double *presence = buffer_take(&s->buffers, rows);
    if (!presence)
        return -ENOMEM;
    uint32_t n = 0;
    int rc = codec_table_values(table, e->presence_column, presence);
    for (uint32_t r = 0; !rc && r < rows && n < e->count; r++)
        if (presence[r] == 1)
            out[n++] = all[r];
    buffer_give(&s->buffers, presence);
    return rc ? rc : n == e->count ? 0 : -EBADMSG;
}

static int cold_decode(struct store_snapshot *s, struct block_ref *b,
                       const struct codec_table *table, const struct block_entry *e,
                       struct column *out)
{
    uint32_t rows = b->header.rows;
    bool points = b->header.kind == BLOCK_POINTS, partial = points || e->count < rows;
    bool ok = column_fits(table, e->value_column, e->count) &&
              !codec_table_values(table, e->value_column, out->own_v) &&
              (points ? column_fits(table, e->time_column, e->count)
                      : !partial || column_fits(table, e->presence_column, rows));
    if (!ok)
        return -EBADMSG;
    int rc = points ? 0 : cold_times(s, b, table, e, &out->pins[0]);
    if (rc)
        return rc;
    int more = choose_times(s, e->count, partial, out);
    if (more <= 0)
        return more;
    return points ? ascending_times(table, e->time_column, e->count, out->own_t)
                  : cold_pick(s, table, e, out->pins[0]->data, rows, out->own_t);
}

static int cold_load(struct store_snapshot *s, struct block_ref *b, const struct block_entry *e,
                     struct column *out)
{
    struct cache_item *part;
    int rc = cold_part(s, b, e->part, &part);
    if (rc)
        return rc;
    rc = cold_decode(s, b, part->table, e, out);
    cache_unpin(part);
    return rc == -EBADMSG ? malformed(s, b) : rc;
}

void column_free(struct store_snapshot *s, struct column *c)
{
    cache_unpin(c->pins[0]);
    cache_unpin(c->pins[1]);
    buffer_give(&s->buffers, c->own_t);
    buffer_give(&s->buffers, c->own_v);
    *c = (struct column){0};
}

// A block that extends beyond the queried range also holds the points next to the range. Queries
// often request these points next (store_point_before, or a cursor from the end of the range on).
// So the snapshot keeps the columns that were cut last.
void column_keep_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *c)
{
    struct cut_column *to = &s->cut[s->next_cut];
    for (unsigned i = 0; i < CUT_COLUMNS; i++)
        if (!s->cut[i].block)
            to = &s->cut[i];
    if (to->block)
        column_free(s, &to->column);
    *to = (struct cut_column){b, series, *c};
    s->next_cut = to == &s->cut[0];
    *c = (struct column){0};
}

bool column_take_cut(struct store_snapshot *s, const struct block_ref *b, uint32_t series,
                     struct column *out)
{
    for (unsigned i = 0; i < CUT_COLUMNS; i++)
        if (s->cut[i].block == b && s->cut[i].series == series) {
            *out = s->cut[i].column;
            s->cut[i] = (struct cut_column){0};
            return true;
        }
    return false;
}

void columns_free_cut(struct store_snapshot *s)
{
    for (unsigned i = 0; i < CUT_COLUMNS; i++)
        if (s->cut[i].block)
            column_free(s, &s->cut[i].column);
}

int block_load(struct store_snapshot *s, struct block_ref *b, const struct block_entry *e,
               struct column *out)
{
    *out = (struct column){0};
    int rc = block_check(s->reader, b, true);
    if (rc)
        return rc;
    out->v = out->own_v = buffer_take(&s->buffers, e->count);
    out->count = e->count;
    rc = !out->own_v                    ? -ENOMEM
         : b->header.flags & BLOCK_COLD ? cold_load(s, b, e, out)
                                        : hot_load(s, b, e, out);
    const int64_t *t = rc ? NULL : out->own_t;
    int64_t first = t ? t[0] : b->header.first_ns, last = t ? t[e->count - 1] : b->header.last_ns;
    if (!rc && (first != e->first_ns || last != e->last_ns))
        rc = malformed(s, b);
    if (rc)
        column_free(s, out);
    return rc;
}
