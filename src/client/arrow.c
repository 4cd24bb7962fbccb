// arrow.c - a result as one Arrow table, through the C stream interface.
//
//   time timestamp[ns, UTC] | value float64 | metric dictionary<int32, utf8>
//   | a dictionary column for each tag key
//
// A series of ARROW_COPY_BELOW points or more is a record batch, whose times and values are the
// answer's own bytes. Consecutive shorter series are copied into a common batch, because thousands
// of batches of one point each would cost readers far more than the copy.
//
// In the batch of one series, all rows of a text column have the same word, so the column's indexes
// repeat one number. All columns and batches with this number share one run of it.
//
//   frame (counted) ─┬─ the result (reference-counted): times, values
//                    ├─ words of each text column, as an Arrow dictionary
//                    └─ runs: number → an array that repeats this number
//
// Every exported array holds a reference to the frame, so arrays may outlive stream, result and
// client.
#include "base/map.h"
#include "client/arrow_interface.h"
#include "client/result.h"

#include <errno.h>
#include <stdlib.h>

enum {
    COLUMN_TIME,
    COLUMN_VALUE,
    COLUMN_TEXTS, // metric is the first text column
    ARROW_COPY_BELOW = 1024,
    ARROW_BATCH_ROWS = 64 * 1024, // rows of a batch that copies short series
};

struct words {
    char *name; // name of the column
    struct map numbers;
    struct str *list;
    size_t count;
    int32_t *offsets; // count + 1 offsets
    char *text;
};

struct batch {
    size_t first, series, rows;
};

struct frame {
    atomic_int uses;
    struct sonde_result *result;
    struct arena arena;
    struct words *texts;
    size_t text_count;
    // number of the word of series i in text column k: numbers[i * text_count + k], -1: null
    int32_t *numbers;
    int32_t **runs; // one for each number
    size_t *run_sizes;
    size_t run_count;
    uint8_t *no_bits; // a validity bitmap without set bits, as long as the longest series
    struct batch *batches;
    size_t batch_count;
};

static void frame_drop(struct frame *f)
{
    if (!f || atomic_fetch_sub(&f->uses, 1) > 1)
        return;
    for (size_t k = 0; f->texts && k < f->text_count; k++)
        map_free(&f->texts[k].numbers);
    for (size_t i = 0; f->runs && i < f->run_count; i++)
        free(f->runs[i]);
    free(f->no_bits);
    sonde_result_free(f->result);
    arena_free(&f->arena);
    free(f);
}

static struct frame *frame_use(struct frame *f)
{
    atomic_fetch_add(&f->uses, 1);
    return f;
}

// ---------------------------------------------------------------- making a frame

// Makes columns 1, 2, … of the sorted keys of all tags. A key with the name of one of our columns
// gets the prefix "tag.".
static int find_keys(struct frame *f)
{
    struct map seen = {0};
    size_t count = 0;
    for (size_t i = 0; i < f->result->count; i++) {
        const struct sonde_series *s = &f->result->series[i];
        for (size_t k = 0; k < s->tag_count; k++) {
            bool added;
            if (!map_add(&seen, str_of(s->tags[k].key), &added)) {
                map_free(&seen);
                return -ENOMEM;
            }
            count += added;
        }
    }
    f->text_count = 1 + count;
    f->texts = arena_zalloc(&f->arena, f->text_count * sizeof *f->texts);
    size_t n = 1;
    for (struct map_slot *slot = map_next(&seen, NULL); slot && f->texts;
         slot = map_next(&seen, slot)) {
        size_t at = n++;
        for (; at > 1 && strcmp(f->texts[at - 1].name, slot->key.data) > 0; at--)
            f->texts[at].name = f->texts[at - 1].name;
        f->texts[at].name = (char *)(uintptr_t)slot->key.data;
    }
    map_free(&seen);
    return f->texts ? 0 : -ENOMEM;
}

static int32_t number_of(struct frame *f, struct words *w, const char *word)
{
    bool added;
    uint64_t *number = map_add(&w->numbers, str_of(word), &added);
    if (!number)
        return -1;
    if (added) {
        *number = w->count;
        if (!w->list)
            w->list = arena_array(&f->arena, f->result->count, sizeof *w->list);
        if (!w->list)
            return -1;
        w->list[w->count++] = str_of(word);
    }
    return (int32_t)*number;
}

// Finds the number of each word. Both the tags of a series and the columns are sorted.
static int number_all(struct frame *f)
{
    f->numbers = arena_array(&f->arena, f->result->count * f->text_count, sizeof *f->numbers);
    if (!f->numbers)
        return -ENOMEM;
    for (size_t i = 0; i < f->result->count; i++) {
        const struct sonde_series *s = &f->result->series[i];
        int32_t *row = f->numbers + i * f->text_count;
        if ((row[0] = number_of(f, &f->texts[0], s->metric)) < 0)
            return -ENOMEM;
        for (size_t k = 1, t = 0; k < f->text_count; k++) {
            while (t < s->tag_count && strcmp(s->tags[t].key, f->texts[k].name) < 0)
                t++;
            bool has = t < s->tag_count && strcmp(s->tags[t].key, f->texts[k].name) == 0;
            row[k] = has ? number_of(f, &f->texts[k], s->tags[t].value) : -1;
            if (has && row[k] < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

static int make_dictionaries(struct frame *f)
{
    static const char *const taken[] = {"time", "value", "metric"};
    f->texts[0].name = arena_strdup(&f->arena, STR("metric"));
    for (size_t k = 0; k < f->text_count; k++) {
        struct words *w = &f->texts[k];
        size_t bytes = 0;
        for (size_t i = 0; i < sizeof taken / sizeof *taken && k; i++)
            if (strcmp(w->name, taken[i]) == 0)
                w->name = arena_printf(&f->arena, "tag.%s", taken[i]);
        for (size_t i = 0; i < w->count; i++)
            bytes += w->list[i].size;
        if (bytes > INT32_MAX)
            return -E2BIG;
        w->offsets = arena_array(&f->arena, w->count + 1, sizeof *w->offsets);
        w->text = arena_alloc(&f->arena, bytes);
        if (!w->name || !w->offsets || !w->text)
            return -ENOMEM;
        w->offsets[0] = 0;
        for (size_t i = 0; i < w->count; i++) {
            if (w->list[i].size)
                memcpy(w->text + w->offsets[i], w->list[i].data, w->list[i].size);
            w->offsets[i + 1] = w->offsets[i] + (int32_t)w->list[i].size;
        }
    }
    return 0;
}

static int cut_batches(struct frame *f)
{
    const struct sonde_series *all = f->result->series;
    f->batches = arena_array(&f->arena, f->result->count, sizeof *f->batches);
    if (!f->batches)
        return -ENOMEM;
    for (size_t i = 0; i < f->result->count; i++) {
        struct batch *last = f->batch_count ? &f->batches[f->batch_count - 1] : NULL;
        bool small = all[i].count < ARROW_COPY_BELOW;
        if (small && last && all[last->first].count < ARROW_COPY_BELOW &&
            last->rows < ARROW_BATCH_ROWS) {
            last->series++;
            last->rows += all[i].count;
        } else {
            f->batches[f->batch_count++] = (struct batch){i, 1, all[i].count};
        }
    }
    return 0;
}

// Makes the runs for batches of one series, each as long as the longest of these series.
static int make_runs(struct frame *f)
{
    size_t longest = 0;
    for (size_t k = 0; k < f->text_count; k++)
        f->run_count = f->texts[k].count > f->run_count ? f->texts[k].count : f->run_count;
    f->run_count += f->run_count == 0; // nulls use the indexes of the first run
    f->runs = arena_zalloc(&f->arena, f->run_count * sizeof(int32_t *));
    f->run_sizes = arena_zalloc(&f->arena, f->run_count * sizeof *f->run_sizes);
    if (!f->runs || !f->run_sizes)
        return -ENOMEM;
    for (size_t b = 0; b < f->batch_count; b++) {
        if (f->batches[b].series > 1)
            continue;
        longest = f->batches[b].rows > longest ? f->batches[b].rows : longest;
        for (size_t k = 0; k < f->text_count; k++) {
            int32_t number = f->numbers[f->batches[b].first * f->text_count + k];
            size_t *size = &f->run_sizes[number < 0 ? 0 : number];
            *size = f->batches[b].rows > *size ? f->batches[b].rows : *size;
        }
    }
    for (size_t n = 0; n < f->run_count; n++) {
        if (!f->run_sizes[n])
            continue;
        // the first run is all zeros: its untouched pages take no memory
        f->runs[n] = calloc(f->run_sizes[n], sizeof(int32_t));
        for (size_t i = 0; n && f->runs[n] && i < f->run_sizes[n]; i++)
            f->runs[n][i] = (int32_t)n;
        if (!f->runs[n])
            return -ENOMEM;
    }
    f->no_bits = calloc(longest / 8 + 1, 1);
    return f->no_bits ? 0 : -ENOMEM;
}

static int frame_make(struct sonde_result *result, struct frame **out)
{
    struct frame *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    atomic_init(&f->uses, 1);
    f->result = result_use(result);
    int (*const steps[])(struct frame *) = {find_keys, number_all, make_dictionaries, cut_batches,
                                            make_runs};
    int rc = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !rc; i++)
        rc = steps[i](f);
    if (rc)
        frame_drop(f);
    else
        *out = f;
    return rc;
}

// ---------------------------------------------------------------- arrays

// The memory of an array, beside its reference to the frame.
struct held {
    struct frame *frame;
    const void *buffers[3];
    void *owned; // memory that does not belong to the frame
    struct ArrowArray dictionary;
    struct ArrowArray **children;
};

static void release_array(struct ArrowArray *a)
{
    struct held *h = a->private_data;
    for (int64_t i = 0; i < a->n_children; i++) {
        if (a->children[i]->release)
            a->children[i]->release(a->children[i]);
        free(a->children[i]);
    }
    if (a->dictionary && a->dictionary->release)
        a->dictionary->release(a->dictionary);
    free(h->children);
    free(h->owned);
    frame_drop(h->frame);
    free(h);
    a->release = NULL;
}

static struct held *array_make(struct frame *f, struct ArrowArray *out, size_t length,
                               int64_t buffers)
{
    struct held *h = calloc(1, sizeof *h);
    *out = (struct ArrowArray){0};
    if (!h)
        return NULL;
    h->frame = frame_use(f);
    *out = (struct ArrowArray){.length = (int64_t)length,
                               .n_buffers = buffers,
                               .buffers = h->buffers,
                               .release = release_array,
                               .private_data = h};
    return h;
}

// Makes a column of times or values, 8 bytes each, from the answer's own memory or a copy of
// several series.
static int make_numbers(struct frame *f, const struct batch *b, bool times, struct ArrowArray *out)
{
    const struct sonde_series *all = f->result->series + b->first;
    struct held *h = array_make(f, out, b->rows, 2);
    if (!h)
        return -ENOMEM;
    h->buffers[1] = times ? (const void *)all->time_ns : all->values;
    if (b->series == 1)
        return 0;
    char *at = h->owned = malloc(b->rows * 8 + 8);
    if (!at)
        return -ENOMEM;
    h->buffers[1] = at;
    for (size_t i = 0; i < b->series; i++) {
        const void *from = times ? (const void *)all[i].time_ns : all[i].values;
        if (all[i].count)
            memcpy(at, from, all[i].count * 8);
        at += all[i].count * 8;
    }
    return 0;
}

static int make_dictionary(struct frame *f, const struct words *w, struct ArrowArray *out)
{
    struct held *h = array_make(f, out, w->count, 3);
    if (!h)
        return -ENOMEM;
    h->buffers[1] = w->offsets;
    h->buffers[2] = w->text;
    return 0;
}

static void shared_indexes(struct frame *f, size_t series, size_t column, struct held *h,
                           struct ArrowArray *out)
{
    int32_t number = f->numbers[series * f->text_count + column];
    h->buffers[1] = f->runs[number < 0 ? 0 : number];
    if (number < 0) {
        h->buffers[0] = f->no_bits;
        out->null_count = out->length;
    }
}

static int copied_indexes(struct frame *f, const struct batch *b, size_t column, struct held *h,
                          struct ArrowArray *out)
{
    size_t bits = (b->rows + 63) / 64 * 8;
    uint8_t *valid = h->owned = calloc(1, bits + b->rows * sizeof(int32_t) + 4);
    if (!valid)
        return -ENOMEM;
    int32_t *indexes = (int32_t *)(void *)(valid + bits);
    size_t row = 0;
    for (size_t i = 0; i < b->series; i++) {
        int32_t number = f->numbers[(b->first + i) * f->text_count + column];
        size_t end = row + f->result->series[b->first + i].count;
        if (number < 0)
            out->null_count += (int64_t)(end - row);
        for (; row < end; row++) {
            indexes[row] = number < 0 ? 0 : number;
            valid[row / 8] |= (uint8_t)((number >= 0) << (row % 8));
        }
    }
    h->buffers[0] = out->null_count ? valid : NULL;
    h->buffers[1] = indexes;
    return 0;
}

static int make_text(struct frame *f, const struct batch *b, size_t column, struct ArrowArray *out)
{
    struct held *h = array_make(f, out, b->rows, 2);
    if (!h)
        return -ENOMEM;
    int rc = make_dictionary(f, &f->texts[column], &h->dictionary);
    if (rc)
        return rc;
    out->dictionary = &h->dictionary;
    if (b->series == 1)
        shared_indexes(f, b->first, column, h, out);
    else
        rc = copied_indexes(f, b, column, h, out);
    return rc;
}

static int make_batch(struct frame *f, const struct batch *b, struct ArrowArray *out)
{
    size_t width = COLUMN_TEXTS + f->text_count;
    struct held *h = array_make(f, out, b->rows, 1);
    if (!h)
        return -ENOMEM;
    out->children = h->children = calloc(width, sizeof *h->children);
    int rc = h->children ? 0 : -ENOMEM;
    for (size_t i = 0; i < width && !rc; i++) {
        struct ArrowArray *child = calloc(1, sizeof *child);
        if (!child) {
            rc = -ENOMEM;
            break;
        }
        out->children[out->n_children++] = child;
        rc = i < COLUMN_TEXTS ? make_numbers(f, b, i == COLUMN_TIME, child)
                              : make_text(f, b, i - COLUMN_TEXTS, child);
    }
    if (rc)
        release_array(out);
    return rc;
}

// ---------------------------------------------------------------- schema

static void release_schema(struct ArrowSchema *s)
{
    for (int64_t i = 0; i < s->n_children; i++) {
        if (s->children[i]->release)
            s->children[i]->release(s->children[i]);
        free(s->children[i]);
    }
    if (s->dictionary) {
        if (s->dictionary->release)
            s->dictionary->release(s->dictionary);
        free(s->dictionary);
    }
    free(s->children);
    free(s->private_data); // frees the name
    s->release = NULL;
}

static int schema_make(const char *format, const char *name, int64_t flags, struct ArrowSchema *out)
{
    char *copy = strdup(name);
    *out = (struct ArrowSchema){
        .format = format, .name = copy, .flags = flags, .release = release_schema};
    out->private_data = copy;
    return copy ? 0 : -ENOMEM;
}

static int column_schema(const struct frame *f, size_t column, struct ArrowSchema *out)
{
    if (column == COLUMN_TIME)
        return schema_make("tsn:UTC", "time", 0, out);
    if (column == COLUMN_VALUE)
        return schema_make("g", "value", 0, out);
    bool metric = column == COLUMN_TEXTS;
    int rc =
        schema_make("i", f->texts[column - COLUMN_TEXTS].name, metric ? 0 : ARROW_NULLABLE, out);
    out->dictionary = calloc(1, sizeof *out->dictionary);
    return rc || !out->dictionary ? -ENOMEM : schema_make("u", "", 0, out->dictionary);
}

// ---------------------------------------------------------------- the stream

struct batches {
    struct frame *frame;
    size_t next; // index of the next batch
};

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    const struct frame *f = ((struct batches *)stream->private_data)->frame;
    size_t width = COLUMN_TEXTS + f->text_count;
    int rc = schema_make("+s", "", 0, out);
    out->children = calloc(width, sizeof *out->children);
    rc = rc || !out->children ? -ENOMEM : 0;
    for (size_t i = 0; i < width && !rc; i++) {
        struct ArrowSchema *child = calloc(1, sizeof *child);
        if (!child) {
            rc = -ENOMEM;
            break;
        }
        out->children[out->n_children++] = child;
        rc = column_schema(f, i, child);
    }
    if (rc)
        release_schema(out);
    return -rc;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct batches *r = stream->private_data;
    *out = (struct ArrowArray){0};
    return r->next == r->frame->batch_count
               ? 0
               : -make_batch(r->frame, &r->frame->batches[r->next++], out);
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "out of memory"; // the only possible failure
}

static void stream_release(struct ArrowArrayStream *stream)
{
    struct batches *r = stream->private_data;
    frame_drop(r->frame);
    free(r);
    stream->release = NULL;
}

int sonde_result_arrow(const struct sonde_result *result, struct ArrowArrayStream *out,
                       struct sonde_error *error)
{
    struct batches *r = calloc(1, sizeof *r);
    *out = (struct ArrowArrayStream){0};
    int rc = r ? frame_make((struct sonde_result *)(uintptr_t)result, &r->frame) : -ENOMEM;
    if (rc) {
        free(r);
        return error_set(error_inside(error), rc,
                         rc == -E2BIG ? "tags of more than 2 GiB do not fit into a table"
                                      : "out of memory");
    }
    *out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                     .get_next = stream_next,
                                     .get_last_error = stream_error,
                                     .release = stream_release,
                                     .private_data = r};
    return 0;
}
