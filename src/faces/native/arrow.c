// arrow.c - /sonde/v1/query in bulk: the answer as one Arrow table, a record batch for each series.
//
//   time timestamp[ns, UTC] | value float64 | query int32 | metric dictionary
//   | one dictionary column for each tag key
//
// The columns are known only after all queries have run. Until then the results stay in memory,
// within the limit of one query.
#include "base/map.h"
#include "faces/native/handlers.h"
#include "formats/arrow_write.h"

#include <errno.h>
#include <stdlib.h>

enum {
    COLUMN_TIME,
    COLUMN_VALUE,
    COLUMN_QUERY,
    COLUMN_METRIC,
    COLUMN_TAGS,              // the first tag's column
    ARROW_TAG_KEYS_MAX = 256, // (413 above it)
};

struct table {
    struct arena *arena;
    const struct query_result *results;
    size_t result_count, series_count;
    struct str keys[ARROW_TAG_KEYS_MAX]; // sorted
    size_t key_count;
    struct table_column columns[COLUMN_TAGS + ARROW_TAG_KEYS_MAX];
    struct map numbers[1 + ARROW_TAG_KEYS_MAX]; // word → number, for the metric and for each key
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "no memory for the answer");
}

static int run_all(struct reading *d, const struct query_request *request, struct table *t,
                   struct error *e)
{
    struct query_result *results = arena_zalloc(t->arena, request->count * sizeof *results);
    if (!results)
        return no_memory(e);
    size_t limit = d->request.memory_bytes;
    for (size_t i = 0; i < request->count; i++) {
        int rc = native_run(d, request, i, t->arena, &results[i], e);
        if (!rc && t->arena->used_bytes > limit)
            rc = error_set(
                e, -E2BIG,
                "all queries together need more than %zu bytes (limit query_memory_bytes)", limit);
        if (rc)
            return rc;
        t->series_count += results[i].count;
    }
    t->results = results;
    t->result_count = request->count;
    return 0;
}

static int add_key(struct table *t, struct str key, struct error *e)
{
    size_t at = 0;
    while (at < t->key_count && str_compare(t->keys[at], key) < 0)
        at++;
    if (at < t->key_count && str_eq(t->keys[at], key))
        return 0;
    if (t->key_count == ARROW_TAG_KEYS_MAX)
        return error_set(e, -E2BIG, "more than %d different tags in one answer",
                         ARROW_TAG_KEYS_MAX);
    memmove(t->keys + at + 1, t->keys + at, (t->key_count - at) * sizeof *t->keys);
    t->keys[at] = key;
    t->key_count++;
    return 0;
}

static const struct str *tag_of(const struct query_series *s, struct str key)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (str_eq(s->tags[i].key, key))
            return &s->tags[i].value;
    return NULL;
}

// Returns the number of a word in the dictionary of text column `index` (0: the metric); adds a new
// word. -1 without memory.
static int32_t number_of(struct table *t, size_t index, struct str word)
{
    struct table_column *column = &t->columns[COLUMN_METRIC + index];
    bool added = false;
    uint64_t *number = map_add(&t->numbers[index], word, &added);
    if (!number)
        return -1;
    if (added) {
        *number = column->word_count;
        ((struct str *)(uintptr_t)column->words)[column->word_count++] = word;
    }
    return (int32_t)*number;
}

static struct str column_name(struct table *t, struct str key)
{
    static const struct str taken[] = {STR("time"), STR("value"), STR("query"), STR("metric")};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (str_eq(taken[i], key))
            return str_of(arena_printf(t->arena, "tag.%.*s", STR_ARG(key)));
    return key;
}

static int make_columns(struct table *t, struct error *e)
{
    for (size_t i = 0; i < t->result_count; i++)
        for (size_t s = 0; s < t->results[i].count; s++)
            for (size_t k = 0; k < t->results[i].series[s].tag_count; k++) {
                int rc = add_key(t, t->results[i].series[s].tags[k].key, e);
                if (rc)
                    return rc;
            }
    t->columns[COLUMN_TIME] = (struct table_column){.name = STR("time"), .type = TABLE_TIME};
    t->columns[COLUMN_VALUE] = (struct table_column){.name = STR("value"), .type = TABLE_DOUBLE};
    t->columns[COLUMN_QUERY] = (struct table_column){.name = STR("query"), .type = TABLE_INT};
    for (size_t i = 0; i <= t->key_count; i++) {
        struct str *words = arena_array(t->arena, t->series_count, sizeof *words);
        struct str name = i ? column_name(t, t->keys[i - 1]) : STR("metric");
        if (!words || !name.data)
            return no_memory(e);
        t->columns[COLUMN_METRIC + i] = (struct table_column){
            .name = name, .type = TABLE_TEXT, .optional = true, .words = words};
    }
    return 0;
}

// Makes the cells of all series, one row of columns per series. After this call the dictionaries
// are complete.
static int fill_cells(struct table *t, int64_t shift_ns, struct table_cells *cells, struct error *e)
{
    size_t width = COLUMN_TAGS + t->key_count;
    for (size_t i = 0; i < t->result_count; i++) {
        for (size_t s = 0; s < t->results[i].count; s++, cells += width) {
            const struct query_series *series = &t->results[i].series[s];
            cells[COLUMN_TIME] = (struct table_cells){.integers = series->t_ns, .shift = shift_ns};
            cells[COLUMN_VALUE] = (struct table_cells){.values = series->values};
            cells[COLUMN_QUERY] = (struct table_cells){.constant = (int32_t)i};
            for (size_t k = 0; k <= t->key_count; k++) {
                const struct str *word = k ? tag_of(series, t->keys[k - 1]) : &series->metric;
                cells[COLUMN_METRIC + k] =
                    (struct table_cells){.constant = word ? number_of(t, k, *word) : -1};
                if (word && cells[COLUMN_METRIC + k].constant < 0)
                    return no_memory(e);
            }
        }
    }
    return 0;
}

static int write_table(struct table *t, int64_t shift_ns, struct buf *out, struct error *e)
{
    int rc = make_columns(t, e);
    if (rc)
        return rc;
    size_t width = COLUMN_TAGS + t->key_count;
    struct table_cells *cells = arena_array(t->arena, t->series_count, width * sizeof *cells);
    if (!cells)
        return no_memory(e);
    rc = fill_cells(t, shift_ns, cells, e);
    if (rc)
        return rc;
    struct arrow_writer w = {.out = out, .columns = t->columns, .count = width};
    arrow_begin(&w);
    for (size_t i = 0; i < t->result_count; i++)
        for (size_t s = 0; s < t->results[i].count && !out->failed; s++, cells += width)
            arrow_batch(&w, t->results[i].series[s].count, cells);
    arrow_end(&w);
    arrow_free(&w);
    return 0;
}

void native_query_arrow(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct query_request request;
    struct reading d;
    struct arena work = {0};
    struct table *t = NULL;
    int rc = 0;
    if (!native_query_open(service, r, &request, &d, a))
        return;
    t = arena_zalloc(&r->arena, sizeof *t);
    if (t) {
        t->arena = &work;
        rc = run_all(&d, &request, t, &e);
    } else {
        rc = no_memory(&e);
    }
    if (!rc)
        rc = write_table(t, service->shift_ns, &a->body, &e);
    for (size_t i = 0; t && i <= t->key_count; i++)
        map_free(&t->numbers[i]);
    arena_free(&work);
    service_read_end(&d, a);
    a->content_type = NATIVE_ARROW_TYPE;
    if (rc)
        answer_failure(a, &e);
}
