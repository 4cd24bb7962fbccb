#include "faces/native/binary.h"

#include "base/bytes.h"
#include "faces/native/handlers.h"

#include <errno.h>

enum { SERIES_ROOM = 256 }; // typical bytes of a series beside its points

static void pad(struct buf *out)
{
    static const char zeros[8];
    buf_add(out, zeros, -out->size & 7);
}

static void describe(struct buf *out, const struct query_series *s, size_t index,
                     const struct store_metric *metric)
{
    buf_varint(out, index);
    buf_short(out, s->metric);
    buf_u8(out, !metric                         ? NATIVE_BINARY_UNKNOWN
                : metric->kind == STORE_COUNTER ? NATIVE_BINARY_COUNTER
                                                : NATIVE_BINARY_GAUGE);
    buf_short(out, metric ? metric->unit : STR(""));
    buf_varint(out, s->tag_count);
    for (size_t i = 0; i < s->tag_count; i++) {
        buf_short(out, s->tags[i].key);
        buf_short(out, s->tags[i].value);
    }
    buf_varint(out, s->aggregate_tag_count);
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        buf_short(out, s->aggregate_tags[i]);
    buf_varint(out, s->source_series);
    buf_u8(out, s->estimated);
}

// Swaps the bytes of each word on a big-endian machine.
static void add_words(struct buf *out, const void *words, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    buf_add(out, words, count * 8);
#else
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, (const char *)words + 8 * i, 8);
        buf_u64(out, word);
    }
#endif
}

void native_binary_begin(struct buf *out)
{
    buf_add_str(out, STR(NATIVE_BINARY_MAGIC));
}

void native_binary_series(struct buf *out, size_t query, const struct query_series *s,
                          const struct store_metric *metric, bool shared, int64_t shift_ns)
{
    struct buf description = {0};
    describe(&description, s, query, metric);
    buf_u64(out, description.size);
    buf_add_str(out, buf_str(&description));
    out->failed |= description.failed;
    buf_free(&description);
    pad(out);
    buf_u64(out, s->count | (shared ? NATIVE_BINARY_SHARED : 0));
    if (!shared && !shift_ns)
        add_words(out, s->t_ns, s->count);
    for (size_t i = 0; !shared && shift_ns && i < s->count; i++)
        buf_u64(out, (uint64_t)(s->t_ns[i] + shift_ns));
    add_words(out, s->values, s->count);
}

void native_binary_end(struct buf *out, uint64_t series, uint64_t points, uint64_t points_read)
{
    buf_u64(out, 0);
    buf_u64(out, series);
    buf_u64(out, points);
    buf_u64(out, points_read);
}

// Finds the series that have the times of the previous one; different times mostly differ in the
// first one. Reserves memory for all series at once, because growing would copy them. NULL: out of
// memory.
static const bool *find_shared(const struct query_result *result, struct arena *arena,
                               struct buf *out)
{
    bool *shared = arena_array(arena, result->count, sizeof *shared);
    size_t size = 0;
    for (size_t i = 0; shared && i < result->count; i++) {
        const struct query_series *s = &result->series[i], *before = &result->series[i ? i - 1 : 0];
        shared[i] = i && s->count && s->count == before->count &&
                    (s->t_ns == before->t_ns || memcmp(s->t_ns, before->t_ns, s->count * 8) == 0);
        size += SERIES_ROOM + s->count * (shared[i] ? 8 : 16);
    }
    buf_reserve(out, size);
    return shared;
}

void native_query_binary(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct query_request request;
    struct reading d;
    struct arena work = {0};
    const struct store_metric *metric = NULL; // of the previous series
    struct str looked_for = STR("");
    uint64_t series = 0, points = 0, read = 0;
    int rc = 0;
    if (!native_query_open(service, r, &request, &d, a))
        return;
    a->content_type = NATIVE_BINARY_TYPE;
    native_binary_begin(&a->body);
    for (size_t i = 0; i < request.count && !rc && !a->body.failed; i++) {
        struct query_result result = {0};
        rc = native_run(&d, &request, i, &work, &result, &e);
        const bool *shared = find_shared(&result, &work, &a->body);
        if (!shared && !rc)
            rc = error_set(&e, -ENOMEM, "no memory for the answer");
        for (size_t k = 0; k < result.count && !rc; k++) {
            const struct query_series *s = &result.series[k];
            if (!str_eq(looked_for, s->metric)) {
                metric = reading_metric(&d, s);
                looked_for = arena_str(&r->arena, s->metric);
            }
            native_binary_series(&a->body, i, s, metric, shared[k], service->shift_ns);
            points += s->count;
        }
        series += result.count;
        read += result.points_read;
        arena_reset(&work);
    }
    native_binary_end(&a->body, series, points, read);
    arena_free(&work);
    service_read_end(&d, a);
    if (rc)
        answer_failure(a, &e);
}
