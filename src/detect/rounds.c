#include "detect/rounds.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int rounds_add(struct rounds *r, struct rounds_sample sample)
{
    if (r->count == ROUNDS_SAMPLES_MAX)
        return -E2BIG;
    if (!array_room(&r->samples, &r->capacity, r->count + 1, sizeof *r->samples))
        return -ENOMEM;
    r->samples[r->count++] = sample;
    return 0;
}

static int by_round(const void *a, const void *b)
{
    const struct rounds_sample *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

static void add_bad(struct rounds_record *r, unsigned rounds, int64_t since_ns, int64_t until_ns,
                    bool silent)
{
    if (!r->bad || r->was_silent != silent)
        r->since_ns = since_ns;
    r->until_ns = until_ns;
    r->rounds += rounds;
    r->bad = true;
    r->was_silent = silent;
}

void rounds_count_missed(struct rounds_record *r)
{
    add_bad(r, r->missed, r->missed_since_ns, r->missed_until_ns, true);
}

// Records the last round's verdict on a member.
static void note_round(struct rounds_record *r, const struct detect_verdict *v, size_t round,
                       int64_t t_ns)
{
    if (v->state == DETECT_SILENT) {
        r->missed_since_ns = r->missed ? r->missed_since_ns : t_ns;
        r->missed_until_ns = t_ns;
        r->missed++;
        return;
    }
    // the member gives values again, so it should have given them in the missed rounds, too
    if (r->missed)
        rounds_count_missed(r);
    r->missed = 0;
    if (v->state != DETECT_SLOW) {
        r->bad = false;
        return;
    }
    add_bad(r, 1, t_ns, t_ns, false);
    if (r->worst <= 0 || round - r->slow_round > ROUNDS_BRIDGED)
        r->slow_since_ns = t_ns;
    r->slow_round = round;
    double factor = v->by_peers ? v->peers : v->own;
    if (factor > r->worst) {
        r->worst = factor;
        r->worst_by_peers = v->by_peers;
    }
}

int rounds_play(struct rounds *r)
{
    size_t members = detect_members(r->detect);
    r->records = calloc(members + 1, sizeof *r->records);
    if (!r->records)
        return -ENOMEM;
    if (r->count)
        qsort(r->samples, r->count, sizeof *r->samples, by_round);
    // The end of the latest sample so far, because the members of a later round may all be early.
    int64_t t_ns = INT64_MIN;
    for (size_t at = 0; at < r->count;) {
        int64_t round = r->samples[at].round;
        for (; at < r->count && r->samples[at].round == round; at++) {
            detect_value(r->detect, r->samples[at].member, r->samples[at].value);
            if (r->samples[at].t_ns > t_ns)
                t_ns = r->samples[at].t_ns;
        }
        detect_round(r->detect);
        r->rounds++;
        for (size_t i = 0; i < members; i++)
            note_round(&r->records[i], detect_verdict_of(r->detect, i), r->rounds, t_ns);
    }
    return 0;
}

void rounds_free(struct rounds *r)
{
    free(r->samples);
    free(r->records);
    *r = (struct rounds){0};
}
