#include "client/result.h"

#include "base/array.h"
#include "base/bytes.h"
#include "faces/native/binary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int damaged(struct error *e)
{
    return error_set(e, -EBADMSG, "the answer is damaged or truncated");
}

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

static const char *text(struct bytes *b, struct arena *arena)
{
    struct str s = bytes_short(b);
    return b->failed ? NULL : arena_strdup(arena, s);
}

// Reads a count of items that each take at least `each` of the remaining bytes, so that damaged
// data cannot make us allocate much memory.
static size_t count_of(struct bytes *b, size_t each)
{
    uint64_t count = bytes_varint(b);
    if (count > bytes_left(b) / each)
        b->failed = true;
    return b->failed ? 0 : (size_t)count;
}

static int read_description(struct str description, struct arena *arena, struct sonde_series *s,
                            size_t *query, struct error *e)
{
    struct bytes b = bytes_of(description.data, description.size);
    *query = (size_t)bytes_varint(&b);
    s->metric = text(&b, arena);
    s->kind = bytes_u8(&b) == NATIVE_BINARY_COUNTER ? SONDE_COUNTER : SONDE_GAUGE;
    s->unit = text(&b, arena);
    s->tag_count = count_of(&b, 2);
    struct sonde_tag *tags = arena_array(arena, s->tag_count, sizeof *tags);
    for (size_t i = 0; tags && i < s->tag_count; i++) {
        tags[i].key = text(&b, arena);
        tags[i].value = text(&b, arena);
        if (!tags[i].key || !tags[i].value)
            return b.failed ? damaged(e) : no_memory(e);
    }
    s->tags = tags;
    s->aggregate_tag_count = count_of(&b, 1);
    const char **keys = arena_array(arena, s->aggregate_tag_count, sizeof *keys);
    for (size_t i = 0; keys && i < s->aggregate_tag_count; i++)
        if (!(keys[i] = text(&b, arena)))
            return b.failed ? damaged(e) : no_memory(e);
    s->aggregate_tags = keys;
    s->source_series = (size_t)bytes_varint(&b);
    s->estimated = bytes_u8(&b) == 1;
    if (b.failed || bytes_left(&b))
        return damaged(e);
    return s->metric && s->unit && tags && keys ? 0 : no_memory(e);
}

// Returns the columns in place; on big-endian machines it swaps their bytes.
static const void *words(struct bytes *b, uint64_t count)
{
    struct str raw = bytes_take(b, count * 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0; !b->failed && i < count; i++) {
        uint64_t word;
        char *at = (char *)(uintptr_t)raw.data + 8 * i;
        memcpy(&word, at, 8);
        word = __builtin_bswap64(word);
        memcpy(at, &word, 8);
    }
#endif
    return raw.data;
}

static int add_series(struct sonde_result *r, size_t *capacity, const struct sonde_series *s,
                      size_t query, struct error *e)
{
    size_t same = *capacity;
    if (!array_room(&r->queries, &same, r->count + 1, sizeof *r->queries) ||
        !array_room(&r->series, capacity, r->count + 1, sizeof *r->series))
        return no_memory(e);
    r->queries[r->count] = query;
    r->series[r->count++] = *s;
    return 0;
}

static int read_all(struct sonde_result *r, struct error *e)
{
    struct bytes b = bytes_of(r->body.data ? r->body.data : "", r->body.size);
    size_t capacity = 0;
    uint64_t size, points = 0;
    if (!str_eq(bytes_take(&b, sizeof NATIVE_BINARY_MAGIC - 1), STR(NATIVE_BINARY_MAGIC)))
        return error_set(e, -EBADMSG, "the server is not a sonde, or has another version");
    while ((size = bytes_u64(&b))) {
        struct sonde_series s = {0};
        struct str description = bytes_take(&b, size);
        bytes_take(&b, -size & 7);
        uint64_t count = bytes_u64(&b);
        bool shared = count & NATIVE_BINARY_SHARED;
        const struct sonde_series *before = r->count ? &r->series[r->count - 1] : NULL;
        count &= ~NATIVE_BINARY_SHARED;
        if (b.failed || count > bytes_left(&b) / (shared ? 8 : 16) ||
            (shared && (!before || before->count != count)))
            return damaged(e);
        s.count = (size_t)count;
        s.time_ns = shared ? before->time_ns : words(&b, count);
        s.values = words(&b, count);
        points += count;
        size_t query;
        int rc = read_description(description, &r->arena, &s, &query, e);
        if (!rc)
            rc = add_series(r, &capacity, &s, query, e);
        if (rc)
            return rc;
    }
    uint64_t series = bytes_u64(&b);
    r->points = bytes_u64(&b);
    r->points_read = bytes_u64(&b);
    return b.failed || bytes_left(&b) || series != r->count || r->points != points ? damaged(e) : 0;
}

static struct sonde_result *make(struct error *e)
{
    struct sonde_result *r = calloc(1, sizeof *r);
    if (r)
        atomic_init(&r->uses, 1);
    else
        no_memory(e);
    return r;
}

int result_read(struct http_answer *answer, struct sonde_result **out, struct error *e)
{
    struct sonde_result *r = make(e);
    *out = NULL;
    if (!r) {
        http_answer_free(answer);
        return -ENOMEM;
    }
    r->body = answer->body;
    r->missing = answer->missing;
    answer->body = (struct buf){0};
    answer->missing = NULL;
    int rc = read_all(r, e);
    if (rc)
        sonde_result_free(r);
    else
        *out = r;
    return rc;
}

// Adds a NUL to each text.
static int take_series(struct sonde_result *r, const struct query_series *from,
                       const struct embedded_server_metric *metric, struct sonde_series *out,
                       struct error *e)
{
    struct sonde_tag *tags = arena_array(&r->arena, from->tag_count, sizeof *tags);
    const char **keys = arena_array(&r->arena, from->aggregate_tag_count, sizeof *keys);
    *out = (struct sonde_series){.metric = arena_strdup(&r->arena, from->metric),
                                 .unit = arena_strdup(&r->arena, metric->unit),
                                 .kind = metric->counter ? SONDE_COUNTER : SONDE_GAUGE,
                                 .tags = tags,
                                 .tag_count = from->tag_count,
                                 .aggregate_tags = keys,
                                 .aggregate_tag_count = from->aggregate_tag_count,
                                 .source_series = from->source_series,
                                 .estimated = from->estimated,
                                 .time_ns = from->t_ns,
                                 .values = from->values,
                                 .count = from->count};
    bool good = tags && keys && out->metric && out->unit;
    for (size_t i = 0; good && i < from->tag_count; i++) {
        tags[i] = (struct sonde_tag){arena_strdup(&r->arena, from->tags[i].key),
                                     arena_strdup(&r->arena, from->tags[i].value)};
        good = tags[i].key && tags[i].value;
    }
    for (size_t i = 0; good && i < from->aggregate_tag_count; i++)
        good = (keys[i] = arena_strdup(&r->arena, from->aggregate_tags[i])) != NULL;
    return good ? 0 : no_memory(e);
}

int result_of_points(struct embedded_server_points *points, struct sonde_result **out,
                     struct error *e)
{
    struct sonde_result *r = make(e);
    int rc = r ? 0 : -ENOMEM;
    *out = NULL;
    if (r) {
        r->arena = points->arena;
        r->missing = points->missing;
        r->count = points->result.count;
        r->points_read = points->result.points_read;
        r->series = calloc(r->count + 1, sizeof *r->series);
        rc = r->series ? 0 : no_memory(e);
    } else {
        arena_free(&points->arena);
        free(points->missing);
    }
    for (size_t i = 0; !rc && i < r->count; i++) {
        rc = take_series(r, &points->result.series[i], &points->metrics[i], &r->series[i], e);
        r->points += r->series[i].count;
    }
    if (rc)
        sonde_result_free(r);
    else
        *out = r;
    return rc;
}

static bool add_missing(struct sonde_result *r, const char *more)
{
    char *both = NULL;
    if (!more)
        return true;
    if (asprintf(&both, "%s%s%s", r->missing ? r->missing : "", r->missing ? ", " : "", more) < 0)
        return false;
    free(r->missing);
    r->missing = both;
    return true;
}

int result_join(struct sonde_result **parts, size_t count, struct sonde_result **out,
                struct error *e)
{
    struct sonde_result *r = make(e);
    size_t series = 0;
    *out = NULL;
    for (size_t i = 0; i < count; i++)
        series += parts[i]->count;
    if (r) {
        r->series = calloc(series + 1, sizeof *r->series);
        r->joined = calloc(count, sizeof(struct sonde_result *));
    }
    bool good = r && r->series && r->joined;
    for (size_t i = 0; good && i < count; i++) {
        memcpy(r->series + r->count, parts[i]->series, parts[i]->count * sizeof *r->series);
        r->count += parts[i]->count;
        r->points += parts[i]->points;
        r->points_read += parts[i]->points_read;
        good = add_missing(r, parts[i]->missing);
    }
    for (size_t i = 0; i < count; i++) {
        if (good)
            r->joined[r->joined_count++] = parts[i];
        else
            sonde_result_free(parts[i]);
    }
    if (!good) {
        sonde_result_free(r);
        return no_memory(e);
    }
    *out = r;
    return 0;
}

void result_narrow(struct sonde_result *r, result_keep_fn *keep, void *user)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t first = 0;
        if (!keep(user, &r->series[i], &first))
            continue;
        struct sonde_series s = r->series[i];
        s.time_ns += first;
        s.values += first;
        s.count -= first;
        if (r->queries)
            r->queries[n] = r->queries[i];
        r->series[n++] = s;
    }
    r->count = n;
}

struct sonde_result *result_use(struct sonde_result *r)
{
    atomic_fetch_add(&r->uses, 1);
    return r;
}

void sonde_result_free(struct sonde_result *r)
{
    if (!r || atomic_fetch_sub(&r->uses, 1) > 1)
        return;
    buf_free(&r->body);
    arena_free(&r->arena);
    free(r->series);
    free(r->queries);
    free(r->missing);
    for (size_t i = 0; i < r->joined_count; i++)
        sonde_result_free(r->joined[i]);
    free(r->joined);
    free(r);
}

size_t sonde_result_count(const struct sonde_result *r)
{
    return r->count;
}

const struct sonde_series *sonde_result_series(const struct sonde_result *r, size_t index)
{
    return index < r->count ? &r->series[index] : NULL;
}

const char *sonde_result_missing(const struct sonde_result *r)
{
    return r->missing;
}
