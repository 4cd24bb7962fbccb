#include "aggregator/native_binary.h"

#include "aggregator/reading.h"
#include "base/bytes.h"

#include <errno.h>

static void pad(struct buf *out)
{
    static const char zeros[8];
    buf_add(out, zeros, -out->size & 7);
}

static void describe(struct buf *out, const struct query_series *s, size_t index, const struct store_metric *metric)
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

// Both ends are little-endian or the bytes are turned one by one.
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

static void add_series(struct buf *out, struct buf *description, const struct query_series *s, int64_t shift_ns)
{
    buf_reserve(out, description->size + 24 + s->count * 16);
    buf_u64(out, description->size);
    buf_add_str(out, buf_str(description));
    pad(out);
    buf_u64(out, s->count);
    if (!shift_ns)
        add_words(out, s->t_ns, s->count);
    for (size_t i = 0; shift_ns && i < s->count; i++)
        buf_u64(out, (uint64_t)(s->t_ns[i] + shift_ns));
    add_words(out, s->values, s->count);
}

void native_query_binary(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct query_request request;
    struct reading d;
    struct arena work = {0};
    struct buf description = {0};
    const struct store_metric *metric = NULL; // of the series before
    struct str looked_for = STR("");
    uint64_t series = 0, points = 0, read = 0;
    int rc = native_query_parse(service, r, &request, &e);
    if (!rc)
        rc = reading_open(service, r, &d, &e);
    if (rc) {
        answer_failure(a, &e);
        return;
    }
    a->content_type = NATIVE_BINARY_TYPE;
    buf_add_str(&a->body, STR(NATIVE_BINARY_MAGIC));
    for (size_t i = 0; i < request.count && !rc && !a->body.failed; i++) {
        struct query_result result = {0};
        rc = opentsdb_run(&d, request.queries[i], &work, &result, &e);
        for (size_t k = 0; k < result.count && !rc; k++) {
            const struct query_series *s = &result.series[k];
            if (!str_eq(looked_for, s->metric)) {
                metric = reading_metric(&d, s->metric);
                looked_for = arena_str(&r->arena, s->metric);
            }
            description.size = 0;
            describe(&description, s, i, metric);
            if (description.failed)
                rc = error_set(&e, -ENOMEM, "no memory for the answer");
            else
                add_series(&a->body, &description, s, service->shift_ns);
            points += s->count;
        }
        series += result.count;
        read += result.points_read;
        arena_reset(&work);
    }
    buf_u64(&a->body, 0);
    buf_u64(&a->body, series);
    buf_u64(&a->body, points);
    buf_u64(&a->body, read);
    buf_free(&description);
    arena_free(&work);
    reading_close(&d, a);
    if (rc)
        answer_failure(a, &e);
}
