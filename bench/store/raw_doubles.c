// raw_doubles.c - the simple alternative to cold blocks, for comparison. It stores the same columns
// as plain doubles, in pieces of the same size. Each piece begins with its time stamps and is
// compressed with zstd at its usual level.
//
//     a part of a cold block  ─▶  t[rows]  v[column 0]  v[column 1] …  ─▶  a frame
//
// If a column has gaps, its own time stamps precede its values.
#include "base/array.h"
#include "base/clock.h"
#include "store/codec_parts.h"
#include "store/reader.h"

#include "reading.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 3 };

// A sequence of words in a frame; time stamps and values alternate.
struct stretch {
    size_t words;
    bool values;
};

struct frame {
    void *bytes;
    size_t size, raw_size;
    struct stretch *stretches;
    size_t stretch_count, stretch_capacity;
};

struct raw_doubles {
    struct frame *frames;
    size_t count, capacity, raw_max;
    uint64_t values, bytes;
    ZSTD_DCtx *context;
    void *raw;
};

static void put(struct buf *raw, struct frame *f, const void *words, size_t count, bool values)
{
    bool room =
        array_room(&f->stretches, &f->stretch_capacity, f->stretch_count + 1, sizeof *f->stretches);
    bench_check(room ? 0 : -ENOMEM, "a stretch", NULL);
    f->stretches[f->stretch_count++] = (struct stretch){count, values};
    buf_add(raw, words, count * sizeof(double));
}

static void end_frame(struct raw_doubles *d, struct frame f, struct buf *raw)
{
    if (!raw->size)
        return;
    bool grown = array_room(&d->frames, &d->capacity, d->count + 1, sizeof *d->frames);
    bench_check(grown ? 0 : -ENOMEM, "a frame", NULL);
    void *room = malloc(ZSTD_compressBound(raw->size));
    f.raw_size = raw->size;
    f.size = ZSTD_compress(room, ZSTD_compressBound(raw->size), raw->data, raw->size, ZSTD_LEVEL);
    bench_check(ZSTD_isError(f.size) ? -ENOMEM : 0, "zstd", NULL);
    f.bytes = realloc(room, f.size);
    d->frames[d->count++] = f;
    d->raw_max = raw->size > d->raw_max ? raw->size : d->raw_max;
    d->bytes += f.size;
    raw->size = 0;
}

static void add_block(struct raw_doubles *d, struct store_snapshot *s, struct block_ref *b,
                      struct buf *raw)
{
    struct cold_directory *directory;
    bench_check(block_check(s->reader, b, true), "check", NULL);
    bench_check(cold_directory_of(s, b, &directory), "directory", NULL);
    struct frame f = {0};
    uint32_t part = 0;
    for (uint32_t i = 0; i < directory->entry_count; i++) {
        const struct block_entry *e = &directory->entries[i];
        if (!e->count)
            continue;
        if (e->part != part) {
            end_frame(d, f, raw);
            f = (struct frame){0};
            part = e->part;
        }
        struct column c;
        bench_check(block_load(s, b, e, &c), "load", NULL);
        if (!raw->size || c.own_t)
            put(raw, &f, c.t, c.count, false);
        put(raw, &f, c.v, c.count, true);
        d->values += c.count;
        column_free(s, &c);
    }
    end_frame(d, f, raw);
}

struct raw_doubles *raw_doubles_of(struct store_reader *r)
{
    struct store_snapshot *s = store_snapshot_open(r);
    struct raw_doubles *d = calloc(1, sizeof *d);
    struct buf raw = {0};
    for (size_t i = 0; i < s->view->block_count; i++) {
        struct block_ref *b = s->view->blocks[i];
        if (b->header.flags & BLOCK_COLD && b->header.kind == BLOCK_SET)
            add_block(d, s, b, &raw);
    }
    buf_free(&raw);
    store_snapshot_close(s);
    d->context = ZSTD_createDCtx();
    d->raw = calloc(1, d->raw_max + 1);
    return d;
}

double raw_doubles_bytes_per_value(const struct raw_doubles *d)
{
    return d->values ? (double)d->bytes / (double)d->values : 0;
}

double raw_doubles_average(struct raw_doubles *d)
{
    double sum = 0;
    int64_t start = clock_monotonic_ns();
    for (size_t i = 0; i < d->count; i++) {
        const struct frame *f = &d->frames[i];
        size_t n = ZSTD_decompressDCtx(d->context, d->raw, d->raw_max, f->bytes, f->size);
        bench_check(n == f->raw_size ? 0 : -EBADMSG, "zstd", NULL);
        const double *at = d->raw;
        for (size_t k = 0; k < f->stretch_count; at += f->stretches[k++].words)
            sum += f->stretches[k].values ? reading_add_up(at, f->stretches[k].words) : 0;
    }
    double rate = (double)d->values / bench_seconds_since(start);
    return sum == sum ? rate : 0;
}

void raw_doubles_free(struct raw_doubles *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->frames[i].bytes);
        free(d->frames[i].stretches);
    }
    free(d->frames);
    free(d->raw);
    ZSTD_freeDCtx(d->context);
    free(d);
}
