// turns.c - distributes nanoseconds among programs and rings (conversion.h).
//
// A stored boot time is even. The bits above bit 0 distinguish the programs that define a common
// series, and the bits above those distinguish the rings of a program. A program without common
// series needs no bits for programs, and a program with one ring needs no bits for rings. Both
// numbers of bits grow as needed and never shrink. Before the agent reads records from any ring, it
// reads the definitions of all programs and assigns the turns. So only points from before the
// second program's arrival have no turn.
#include "base/array.h"
#include "ingest/ingest_internal.h"

enum { EVEN = 2 };

void turns_define(struct ingest *in, struct program *p, uint32_t series)
{
    if (!array_room_zeroed(&in->definers, &in->definers_capacity, (size_t)series + 1,
                           sizeof *in->definers))
        return;
    uint32_t definers = ++in->definers[series];
    // a second definer has come, so the first one must check its turn, too
    in->sharing += definers == 2;
    if (definers > 1)
        p->sharing_seen = 0;
}

void turns_release(struct ingest *in, struct program *p)
{
    for (size_t i = 0; i < p->definition_count; i++) {
        const struct definition *d = &p->definitions[i];
        if (d->state == DEFINITION_METRIC && d->series < in->definers_capacity &&
            in->definers[d->series])
            in->definers[d->series]--;
    }
    if (p->shares)
        in->turns_taken[p->turn] = false;
}

static bool has_shared_series(const struct ingest *in, const struct program *p)
{
    for (size_t i = 0; i < p->definition_count; i++) {
        const struct definition *d = &p->definitions[i];
        if (d->state == DEFINITION_METRIC && d->series < in->definers_capacity &&
            in->definers[d->series] > 1)
            return true;
    }
    return false;
}

// Takes the turn that the program had under the previous agent, if no other program has it.
static void take_first(struct ingest *in, struct program *p)
{
    p->turn = (uint32_t)p->conversion.turn;
    if (p->turn >= in->programs_max || in->turns_taken[p->turn])
        p->turn = 0;
    while (p->turn + 1 < in->programs_max && in->turns_taken[p->turn])
        p->turn++;
    in->turns_taken[p->turn] = true;
    while (in->turns <= p->turn)
        in->turns *= 2;
    p->shares = true;
}

void turns_take(struct ingest *in, struct program *p)
{
    if (p->shares || p->sharing_seen == in->sharing)
        return;
    p->sharing_seen = in->sharing;
    if (has_shared_series(in, p))
        take_first(in, p);
}

bool turns_share(const struct ingest *in, struct program *p, uint32_t rings)
{
    struct conversion *c = &p->conversion;
    int64_t unit = p->shares ? in->turns : 1, turn = p->shares ? p->turn : 0, lanes = EVEN * unit;
    while (lanes < EVEN * unit * rings)
        lanes *= 2;
    if (c->unit == unit && c->turn == turn && c->lanes >= lanes)
        return false;
    c->unit = unit;
    c->turn = turn;
    c->lanes = lanes > c->lanes ? lanes : c->lanes;
    return true;
}

static bool power_of_two(int64_t n, int64_t most)
{
    return n > 0 && n <= most && (n & (n - 1)) == 0;
}

bool turns_valid(const struct conversion *c)
{
    enum { UNITS_MAX = 1 << 20 };
    return power_of_two(c->unit, UNITS_MAX) &&
           power_of_two(c->lanes, (int64_t)EVEN * UNITS_MAX * SEGMENT_SLOTS_MAX) &&
           c->lanes >= EVEN * c->unit && c->turn >= 0 && c->turn < c->unit;
}
