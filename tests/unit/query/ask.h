// ask.h - runs queries in the form of m= on a world.
#ifndef SONDE_TESTS_QUERY_ASK_H
#define SONDE_TESTS_QUERY_ASK_H

#include "query/query.h"
#include "unit/query/world.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define S INT64_C(1000000000)        // ns
static const int64_t T = 1356998400; // s; 2013-01-01 00:00:00 UTC

struct asked {
    struct arena arena;
    struct query_result result;
    struct error error;
    int code;
};

// Queries [from, to] in seconds.
static inline struct asked ask_with(struct world *w, const char *m, int64_t from_s, int64_t to_s,
                                    const struct query_limits *limits)
{
    struct asked a = {0};
    struct query q = {.start_ns = from_s * S, .end_ns = to_s * S};
    a.code = query_parse_m(str_of(m), &a.arena, &q, &a.error);
    size_t count;
    struct store_snapshot *const *stores = world_stores(w, &count);
    if (a.code == 0)
        a.code = query_run(&q, stores, count, limits, &a.arena, &a.result, &a.error);
    return a;
}

static inline struct asked ask(struct world *w, const char *m, int64_t from_s, int64_t to_s)
{
    struct asked a = ask_with(w, m, from_s, to_s, NULL);
    if (a.code)
        fail_msg("%s: %d %s", m, a.code, a.error.text);
    return a;
}

static inline void asked_free(struct asked *a)
{
    arena_free(&a->arena);
}

static inline struct query_cache *cache_of(size_t bytes)
{
    struct query_cache *cache;
    assert_int_equal(query_cache_create(bytes, &cache), 0);
    return cache;
}

// Asserts that both answers are equal to the last bit, from the same points.
static inline void assert_same(const struct asked *a, const struct asked *b, const char *m)
{
    if (a->code || b->code || a->result.count != b->result.count)
        fail_msg("%s: %d %d, %zu and %zu series", m, a->code, b->code, a->result.count,
                 b->result.count);
    for (size_t i = 0; i < a->result.count; i++) {
        const struct query_series *x = &a->result.series[i], *y = &b->result.series[i];
        assert_int_equal(x->count, y->count);
        assert_memory_equal(x->t_ns, y->t_ns, x->count * sizeof *x->t_ns);
        assert_memory_equal(x->values, y->values, x->count * sizeof *x->values);
    }
    assert_int_equal(a->result.points_read, b->result.points_read);
    assert_int_equal(a->result.points_from_summaries, b->result.points_from_summaries);
}

static inline void assert_close(double got, double want)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
        fail_msg("got %.17g, want %.17g", got, want);
}

// Asserts that a series has exactly these points: time in seconds, value, time, value …
static inline void assert_points(const struct query_series *s, const double *want, size_t numbers)
{
    if (s->count != numbers / 2)
        for (size_t i = 0; i < s->count && i < 20; i++)
            print_message("  %lld %.17g\n", (long long)(s->t_ns[i] / S), s->values[i]);
    assert_int_equal(s->count, numbers / 2);
    for (size_t i = 0; i < s->count; i++) {
        assert_close((double)s->t_ns[i] / (double)S, want[2 * i]);
        assert_close(s->values[i], want[2 * i + 1]);
    }
}

#define ASSERT_ANSWER(world, m, from, to, ...)                                        \
    do {                                                                              \
        const double want_[] = {__VA_ARGS__};                                         \
        struct asked asked_ = ask(world, m, from, to);                                \
        assert_int_equal(asked_.result.count, 1);                                     \
        assert_points(&asked_.result.series[0], want_, sizeof want_ / sizeof *want_); \
        asked_free(&asked_);                                                          \
    } while (0)

static inline const char *tags_text(const struct query_series *s, char *out, size_t size)
{
    int n = 0;
    out[0] = 0;
    for (size_t i = 0; i < s->tag_count; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%.*s=%.*s", i ? "," : "",
                      STR_ARG(s->tags[i].key), STR_ARG(s->tags[i].value));
    for (size_t i = 0; i < s->aggregate_tag_count; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%.*s", i ? "," : "|",
                      STR_ARG(s->aggregate_tags[i]));
    return out;
}

static inline void assert_tags(const struct query_series *s, const char *want)
{
    char text[1024];
    assert_string_equal(tags_text(s, text, sizeof text), want);
}

#endif
