#include "wire/clock_offset.h"

void clock_offset_add(struct clock_offset *c, int64_t t1, int64_t t2, int64_t t3, int64_t t4)
{
    int64_t there, back, round, away, span;
    if (__builtin_sub_overflow(t2, t1, &there) || __builtin_sub_overflow(t3, t4, &back) ||
        __builtin_sub_overflow(t4, t1, &span) || __builtin_sub_overflow(t3, t2, &away) ||
        __builtin_sub_overflow(span, away, &round) || round < 0 || away < 0)
        return;
    unsigned at = (unsigned)(c->count++ % CLOCK_OFFSET_SAMPLES);
    // halved first, because the sum may overflow
    c->samples[at].offset_ns = there / 2 + back / 2 + (there % 2 + back % 2) / 2;
    c->samples[at].round_ns = round;
}

bool clock_offset_get(const struct clock_offset *c, int64_t *offset_ns, int64_t *error_ns)
{
    uint64_t count = c->count < CLOCK_OFFSET_SAMPLES ? c->count : CLOCK_OFFSET_SAMPLES;
    if (count == 0)
        return false;
    unsigned best = 0;
    for (unsigned i = 1; i < count; i++)
        if (c->samples[i].round_ns < c->samples[best].round_ns)
            best = i;
    *offset_ns = c->samples[best].offset_ns;
    *error_ns = (c->samples[best].round_ns + 1) / 2;
    return true;
}
