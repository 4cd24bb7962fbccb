#include "store/cold.h"

#include "base/arena.h"
#include "base/bytes.h"
#include "base/huge_pages.h"
#include "store/codec_table.h"
#include "store/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum {
    DIRECTORY_RAW_MAX = 256 << 20,
    PARTS_MAX = 65536,
    SMALL_BYTES = 64 << 10,
    SMALL_LEVEL = 10,
    PACK_BYTES = 128 << 10, // bytes of the directory that one call compresses: about a millisecond
    // A table with more values a byte than this consists of gaps and of columns that derive from
    // others. Its bytes repeat, and compressing them takes little time beside encoding its values.
    REPEATS_VALUES_A_BYTE = 2,
    PART_SERIES_MAX = 2000, // each series has at most two columns, and the time stamps have one
};
_Static_assert(2 * (int)PART_SERIES_MAX + 1 <= (int)CODEC_TABLE_COLUMNS_MAX,
               "the columns of a part are one table");

// ---- Writing ----

struct cold_writer {
    struct buf *out;
    // start of the block, its data, and until the directory is written, the scratch
    size_t start, data_at;
    struct block_header header;
    struct buf data, directory, parts;
    uint32_t part_count;
    struct cold_effort effort;
    size_t series_in_part, values_in_part;
    const int64_t *t_ns; // only for a set: times of all rows
    struct block_entry previous;
    struct codec_column columns[CODEC_TABLE_COLUMNS_MAX];
    uint32_t column_count; // number of columns in the unfinished part
    struct arena memory;   // holds these columns
    // Used by the end: the unpacked directory, and how far it has been compressed.
    ZSTD_CCtx *packer;
    struct buf raw;
    size_t packed;
};

// Of little data, high levels save about 1 %, and take most of the time of a short job's end.
static int level_for(int level, size_t size)
{
    return size < SMALL_BYTES && level > SMALL_LEVEL ? SMALL_LEVEL : level;
}

static int finish_part(struct cold_writer *w)
{
    if (!w->column_count)
        return 0;
    uint8_t *raw = malloc(codec_table_bound(w->columns, w->column_count));
    size_t raw_size = raw ? codec_table_encode(w->columns, w->column_count, raw) : 0;
    size_t before = w->data.size, bound = codec_table_compress_bound(raw_size);
    int rc = raw_size && buf_reserve(&w->data, bound) ? 0 : -ENOMEM;
    if (!rc) {
        bool repeats = raw_size * REPEATS_VALUES_A_BYTE < w->values_in_part;
        int level = repeats ? w->effort.repeats_level : w->effort.level;
        size_t n = codec_table_compress(raw, raw_size, level_for(level, raw_size),
                                        (uint8_t *)w->data.data + before);
        rc = n ? 0 : -ENOMEM;
        w->data.size += n;
    }
    free(raw);
    buf_varint(&w->parts, w->data.size - before);
    buf_varint(&w->parts, raw_size);
    w->part_count++;
    w->column_count = 0;
    w->series_in_part = w->values_in_part = 0;
    arena_reset(&w->memory);
    return rc;
}

static uint16_t put_column(struct cold_writer *w, const void *data, uint32_t n, bool times)
{
    w->columns[w->column_count] = (struct codec_column){data, n, times};
    return (uint16_t)w->column_count++;
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static bool same(double a, double b)
{
    return bits_of(a) == bits_of(b);
}

static void put_number(struct buf *out, double v)
{
    uint64_t bits = bits_of(v);
    uint8_t k = 8;
    while (k && !(bits & 0xff)) {
        bits >>= 8;
        k--;
    }
    buf_u8(out, k);
    buf_add(out, &bits, k);
}

static void put_summary(struct buf *out, const struct block_entry *e)
{
    const struct store_summary *s = &e->summary;
    double n = e->count;
    unsigned shape = e->nans ? SHAPE_NANS : 0;
    if (!e->nans && same(s->last, s->first) && same(s->min, s->first) && same(s->max, s->first) &&
        same(s->sum, n * s->first) && same(s->sum_squares, n * (s->first * s->first)))
        shape |= SHAPE_CONSTANT;
    if (same(s->min, s->first))
        shape |= SHAPE_MIN_FIRST;
    else if (same(s->min, s->last))
        shape |= SHAPE_MIN_LAST;
    if (same(s->max, s->last))
        shape |= SHAPE_MAX_LAST;
    else if (same(s->max, s->first))
        shape |= SHAPE_MAX_FIRST;
    buf_u8(out, (uint8_t)shape);
    if (e->nans)
        buf_varint(out, e->nans);
    put_number(out, s->first);
    if (shape & SHAPE_CONSTANT)
        return;
    put_number(out, s->last);
    if (!(shape & (SHAPE_MIN_FIRST | SHAPE_MIN_LAST)))
        put_number(out, s->min);
    if (!(shape & (SHAPE_MAX_FIRST | SHAPE_MAX_LAST)))
        put_number(out, s->max);
    put_number(out, s->sum);
    put_number(out, s->sum_squares);
}

static void put_entry(struct cold_writer *w, const struct block_entry *e, bool first)
{
    struct buf *d = &w->directory;
    const struct block_header *h = &w->header;
    bool set = h->kind == BLOCK_SET, partial = !set || e->count < h->rows;
    if (!set)
        buf_varint(d, first ? e->series : e->series - w->previous.series - 1);
    buf_varint(d, set ? h->rows - e->count : e->count);
    if (!e->count)
        return;
    buf_varint(d, e->part - w->previous.part);
    buf_varint(d, zigzag((int64_t)e->time_column - w->previous.time_column));
    buf_varint(d, zigzag((int64_t)e->value_column - w->previous.value_column));
    if (set && partial)
        buf_varint(d, e->presence_column);
    if (partial) {
        buf_varint(d, (uint64_t)e->first_ns - (uint64_t)h->first_ns);
        buf_varint(d, (uint64_t)h->last_ns - (uint64_t)e->last_ns);
    }
    put_summary(d, e);
    w->previous = *e;
}

static void summarise(struct block_entry *e, const double *values)
{
    struct codec_summary s;
    codec_summarise_plain(values, e->count, &s);
    e->nans = s.nans;
    e->summary = block_summary(&s, values, e->count);
}

struct cold_writer *cold_begin(struct buf *out, const struct block_source *source,
                               enum block_kind kind, const struct cold_effort *effort)
{
    struct cold_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->effort = *effort;
    if (w->effort.part_series > PART_SERIES_MAX)
        w->effort.part_series = PART_SERIES_MAX;
    w->start = block_begin(out, source, kind, &w->header);
    w->header.first_ns = INT64_MAX;
    w->header.last_ns = INT64_MIN;
    return w;
}

static int begin_directory(struct cold_writer *w)
{
    int rc = finish_part(w);
    buf_varint(&w->raw, w->part_count);
    buf_add_str(&w->raw, buf_str(&w->parts));
    buf_add_str(&w->raw, buf_str(&w->directory));
    if (rc || w->raw.failed || w->parts.failed || w->directory.failed)
        return rc ? rc : -ENOMEM;
    w->packer = ZSTD_createCCtx();
    if (!w->packer || !buf_reserve(w->out, ZSTD_compressBound(w->raw.size)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(w->packer, ZSTD_c_compressionLevel,
                                            level_for(w->effort.level, w->raw.size))) ||
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(w->packer, w->raw.size)))
        return -ENOMEM;
    return 1;
}

int cold_pack(struct cold_writer *w)
{
    if (!w->packer)
        return begin_directory(w);
    if (w->packed == w->raw.size)
        return 0;
    size_t left = w->raw.size - w->packed, n = left < PACK_BYTES ? left : PACK_BYTES;
    ZSTD_inBuffer in = {w->raw.data, w->packed + n, w->packed};
    ZSTD_outBuffer to = {w->out->data, w->out->capacity, w->out->size};
    size_t more =
        ZSTD_compressStream2(w->packer, &to, &in, n == left ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(more) || in.pos < in.size || (n == left && more))
        return -ENOMEM; // the output has room, so only memory can have been exhausted
    w->out->size = to.pos;
    w->packed += n;
    return 1;
}

void cold_cancel(struct cold_writer *w)
{
    if (!w)
        return;
    w->out->size = w->start;
    ZSTD_freeCCtx(w->packer);
    buf_free(&w->raw);
    buf_free(&w->data);
    buf_free(&w->parts);
    buf_free(&w->directory);
    arena_free(&w->memory);
    free(w);
}

int cold_end(struct cold_writer *w)
{
    int rc;
    while ((rc = cold_pack(w)) > 0)
        ;
    if (!rc) {
        w->header.directory_bytes = (uint32_t)(w->out->size - w->start - sizeof w->header);
        w->header.directory_raw_bytes = (uint32_t)w->raw.size;
        buf_add_str(w->out, buf_str(&w->data));
        w->header.flags |= BLOCK_COLD | BLOCK_ZSTD_DIRECTORY | BLOCK_ZSTD_DATA;
        rc = block_end(w->out, w->start, &w->header);
    }
    if (!rc)
        w->start = w->out->size; // after a later failure, the block stays in the output
    cold_cancel(w);
    return rc;
}

// Called before another column or series is added. Finishes the part if it has no room left.
static int make_room(struct cold_writer *w, size_t values)
{
    if (w->series_in_part && (w->series_in_part == w->effort.part_series ||
                              w->values_in_part + values > w->effort.part_values))
        return finish_part(w);
    return 0;
}

// Adds one column of a set to the part: its values, and if some are missing, a column that marks
// the rows with a value.
static int add_set_column(struct cold_writer *w, const int64_t *t_ns, const double *column,
                          struct block_entry *e)
{
    uint32_t rows = w->header.rows;
    double *present = arena_array(&w->memory, rows, sizeof *present);
    double *presence = arena_array(&w->memory, rows, sizeof *presence);
    if (!present || !presence)
        return -ENOMEM;
    for (uint32_t r = 0; r < rows; r++) {
        bool there = !store_is_missing(column[r]);
        presence[r] = there;
        if (!there)
            continue;
        if (!e->count)
            e->first_ns = t_ns[r];
        e->last_ns = t_ns[r];
        present[e->count++] = column[r];
    }
    if (!e->count)
        return 0;
    if (e->count < rows) {
        // Columns often lack values in the same rows.
        for (uint32_t c = 1; c < w->column_count && !e->presence_column; c++)
            if (w->columns[c].n == rows &&
                !memcmp(w->columns[c].data, presence, rows * sizeof *presence))
                e->presence_column = (uint16_t)c;
        if (!e->presence_column)
            e->presence_column = put_column(w, presence, rows, false);
    }
    e->part = w->part_count;
    e->value_column = put_column(w, present, e->count, false);
    summarise(e, present);
    return 0;
}

void cold_rows(struct cold_writer *w, const int64_t *t_ns, uint32_t rows, uint32_t columns)
{
    w->t_ns = t_ns;
    w->header.rows = rows;
    w->header.columns = columns;
    w->header.first_ns = t_ns[0];
    w->header.last_ns = t_ns[rows - 1];
}

int cold_put_column(struct cold_writer *w, const double *values)
{
    struct block_header *h = &w->header;
    int rc = make_room(w, h->rows);
    if (rc)
        return rc;
    if (!w->column_count)
        put_column(w, w->t_ns, h->rows, true);
    struct block_entry e = {.first_ns = h->first_ns, .last_ns = h->last_ns};
    rc = add_set_column(w, w->t_ns, values, &e);
    h->values += e.count;
    put_entry(w, &e, false);
    w->series_in_part++;
    w->values_in_part += h->rows;
    return rc;
}

void cold_points(struct cold_writer *w, int64_t first_ns, int64_t last_ns)
{
    w->header.first_ns = first_ns;
    w->header.last_ns = last_ns;
}

int cold_put_series(struct cold_writer *w, const struct point_record *points, uint32_t n)
{
    int rc = n > CODEC_VALUES_MAX ? -EFBIG : make_room(w, n);
    if (rc)
        return rc;
    int64_t *t = arena_array(&w->memory, n, sizeof *t);
    double *v = arena_array(&w->memory, n, sizeof *v);
    if (!t || !v)
        return -ENOMEM;
    for (uint32_t k = 0; k < n; k++) {
        t[k] = points[k].t_ns;
        v[k] = points[k].value;
    }
    struct block_entry e = {
        .series = points->series, .count = n, .first_ns = t[0], .last_ns = t[n - 1]};
    e.part = w->part_count;
    e.time_column = put_column(w, t, n, true);
    e.value_column = put_column(w, v, n, false);
    summarise(&e, v);
    put_entry(w, &e, !w->header.columns++);
    w->header.rows += n;
    w->header.values += n;
    w->series_in_part++;
    w->values_in_part += n;
    return 0;
}

// ---- Reading ----

static double get_number(struct bytes *in)
{
    uint8_t k = bytes_u8(in);
    if (k > 8)
        in->failed = true;
    struct str s = bytes_take(in, k > 8 ? 0 : k);
    uint64_t bits = 0;
    if (s.size) {
        memcpy(&bits, s.data, s.size);
        bits <<= 8 * (8 - s.size);
    }
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void get_summary(struct bytes *in, struct block_entry *e)
{
    struct store_summary *s = &e->summary;
    unsigned shape = bytes_u8(in);
    e->has_summary = true;
    e->nans = shape & SHAPE_NANS ? (uint32_t)bytes_varint(in) : 0;
    s->first = get_number(in);
    if (shape & SHAPE_CONSTANT) {
        s->last = s->min = s->max = s->first;
        s->sum = e->count * s->first;
        s->sum_squares = e->count * (s->first * s->first);
        return;
    }
    s->last = get_number(in);
    s->min = shape & SHAPE_MIN_FIRST ? s->first : shape & SHAPE_MIN_LAST ? s->last : get_number(in);
    s->max = shape & SHAPE_MAX_LAST ? s->last : shape & SHAPE_MAX_FIRST ? s->first : get_number(in);
    s->sum = get_number(in);
    s->sum_squares = get_number(in);
}

static bool get_entry(struct bytes *in, const struct block_header *h,
                      const struct cold_directory *d, struct block_entry *e,
                      struct block_entry *previous, bool first)
{
    bool set = h->kind == BLOCK_SET;
    *e = (struct block_entry){.first_ns = h->first_ns, .last_ns = h->last_ns};
    if (!set) {
        uint64_t series = bytes_varint(in) + (first ? 0 : (uint64_t)previous->series + 1);
        if (series > UINT32_MAX)
            return false;
        e->series = (uint32_t)series;
    }
    uint64_t count = bytes_varint(in);
    if (count > h->rows || in->failed)
        return false;
    e->count = (uint32_t)(set ? h->rows - count : count);
    if (!e->count)
        return set;
    bool partial = !set || e->count < h->rows;
    uint64_t part = previous->part + bytes_varint(in);
    e->time_column = (uint16_t)(previous->time_column + unzigzag(bytes_varint(in)));
    e->value_column = (uint16_t)(previous->value_column + unzigzag(bytes_varint(in)));
    if (set && partial)
        e->presence_column = (uint16_t)bytes_varint(in);
    if (partial) {
        e->first_ns = (int64_t)((uint64_t)h->first_ns + bytes_varint(in));
        e->last_ns = (int64_t)((uint64_t)h->last_ns - bytes_varint(in));
    }
    get_summary(in, e);
    if (part >= d->part_count || in->failed || e->count > CODEC_VALUES_MAX ||
        e->first_ns > e->last_ns || e->first_ns < h->first_ns || e->last_ns > h->last_ns ||
        (set && partial && !e->presence_column))
        return false;
    e->part = (uint32_t)part;
    *previous = *e;
    return true;
}

static bool get_directory(struct bytes *in, const struct block_header *h, struct cold_directory *d)
{
    uint64_t at = 0;
    for (uint32_t p = 0; p < d->part_count; p++) {
        uint64_t size = bytes_varint(in), raw = bytes_varint(in);
        if (size > h->data_bytes - at || raw > UINT32_MAX)
            return false;
        d->parts[p] = (struct cold_part){(uint32_t)at, (uint32_t)size, (uint32_t)raw};
        at += size;
    }
    struct block_entry previous = {0};
    for (uint32_t i = 0; i < d->entry_count && !in->failed; i++)
        if (!get_entry(in, h, d, &d->entries[i], &previous, !i))
            return false;
    return !in->failed;
}

int cold_directory_open(const struct block_header *h, const uint8_t *stored,
                        struct cold_directory **out)
{
    *out = NULL;
    if (h->directory_raw_bytes > DIRECTORY_RAW_MAX || h->columns > h->directory_raw_bytes)
        return -EBADMSG;
    uint8_t *raw = malloc(h->directory_raw_bytes + 1);
    if (!raw)
        return -ENOMEM;
    int rc = unpack(raw, h->directory_raw_bytes, stored, h->directory_bytes);
    struct bytes in = bytes_of(raw, rc ? 0 : h->directory_raw_bytes);
    uint64_t parts = bytes_varint(&in);
    if (!rc && (in.failed || parts > PARTS_MAX))
        rc = -EBADMSG;
    struct cold_directory *d = NULL;
    if (!rc) {
        size_t bytes =
            sizeof *d + (size_t)parts * sizeof *d->parts + h->columns * sizeof *d->entries;
        bytes += _Alignof(struct block_entry);
        d = huge_pages_alloc(bytes);
        if (d) {
            d->bytes = bytes;
            d->part_count = (uint32_t)parts;
            d->entry_count = h->columns;
            d->entries = (struct block_entry *)(void *)(d + 1);
            d->parts = (struct cold_part *)(void *)(d->entries + h->columns);
        }
        rc = !d ? -ENOMEM : get_directory(&in, h, d) ? 0 : -EBADMSG;
    }
    free(raw);
    if (rc)
        cold_directory_free(d);
    else
        *out = d;
    return rc;
}

void cold_directory_free(struct cold_directory *d)
{
    if (d)
        huge_pages_free(d, d->bytes);
}
