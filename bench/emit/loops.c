#include "loops.h"

#include "base/clock.h"

// Keeps the compiler from seeing that the handle is the same each time.
#define FORGET(handle) __asm__ volatile("" : "+r"(handle))

void loop_empty(const struct loop_target *t, long times)
{
    sonde_handle h = t->metric;
    for (long i = 0; i < times; i++)
        FORGET(h);
}

void loop_emit(const struct loop_target *t, long times)
{
    sonde_handle h = t->metric;
    for (long i = 0; i < times; i++) {
        FORGET(h);
        sonde_emit(h, (double)i);
    }
}

void loop_emit_at(const struct loop_target *t, long times)
{
    sonde_handle h = t->metric;
    int64_t now = clock_realtime_ns();
    for (long i = 0; i < times; i++) {
        FORGET(h);
        sonde_emit_at(h, (double)i, now + i);
    }
}

void loop_row(const struct loop_target *t, long times)
{
    sonde_handle h = t->group;
    for (long i = 0; i < times; i++) {
        FORGET(h);
        sonde_emit_group(h, t->row);
    }
}

void loop_set(const struct loop_target *t, long times)
{
    sonde_handle h = t->metric;
    for (long i = 0; i < times; i++) {
        FORGET(h);
        sonde_set(h, (double)i);
    }
}

void loop_add(const struct loop_target *t, long times)
{
    sonde_handle h = t->metric;
    for (long i = 0; i < times; i++) {
        FORGET(h);
        sonde_add(h, 1);
    }
}

void loop_span(const struct loop_target *t, long times)
{
    (void)t;
    for (long i = 0; i < times; i++) {
        sonde_span_begin("span", "key", "value");
        sonde_span_end();
    }
}

void loop_free_span(const struct loop_target *t, long times)
{
    (void)t;
    const struct sonde_tag tag = {"key", "value"};
    for (long i = 0; i < times; i++) {
        struct sonde_span span = sonde_span_open("span", &tag, 1, NULL);
        sonde_span_close(&span, "span", &tag, 1);
    }
}

void loop_clock_gettime(const struct loop_target *t, long times)
{
    (void)t;
    for (long i = 0; i < times; i++) {
        int64_t now = clock_realtime_ns();
        __asm__ volatile("" : : "r"(now));
    }
}

void loop_ticks(const struct loop_target *t, long times)
{
    (void)t;
    for (long i = 0; i < times; i++) {
        uint64_t now = clock_ticks();
        __asm__ volatile("" : : "r"(now));
    }
}
