#include "detect/detect.h"

#include "base/array.h"
#include "base/map.h"
#include "detect/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    JUMPS = 64,        // jumps remembered per member
    JUDGED = 32,       // past rounds that are judged again
    POOLED_MAX = 4096, // jumps examined per round; at least one per member
};

// The median absolute deviation of normal noise, as a part of its standard deviation.
static const double MAD_OF_NORMAL = 0.6745;

struct member {
    char *name;
    size_t name_size;
    bool gone;
    // this round's value as a logarithm, where larger is worse; NaN: no value
    double given;
    double last[DETECT_WINDOW_MAX]; // the newest values, a ring
    float jumps[JUMPS];             // |value - the previous one|, a ring
    unsigned values, jump_count;    // total numbers, also of values no longer stored
    double widen;                   // the level's noise as a multiple of a full window's
    double stretch_sum;             // sum of the values of the current stretch
    unsigned stretch_count;
    double best;  // smallest mean of a stretch; NaN: none yet
    double level; // NaN: too few values
    // A ring with one entry for each of this member's newest rounds with a value: the largest noise
    // of levels at which the member was over the line; 0: it was not over the line at any noise.
    float bearable[JUDGED];
    unsigned judged;       // total number of these rounds
    unsigned over, missed; // consecutive rounds
    struct detect_verdict verdict;
};

struct detect {
    struct detect_options o;
    struct map numbers; // name → number
    struct member *members;
    size_t count, capacity;
    double *pooled; // room for POOLED_MAX jumps, at least one per member
    // the sorted values of comparisons: four columns of `column` doubles, at least one per member
    double *room;
    size_t column, pooled_capacity, room_capacity;
};

// ---------------------------------------------------------------- members

struct detect *detect_create(const struct detect_options *given)
{
    struct detect_options o = *given;
    o.window = o.window ? o.window : 3;
    o.persistence = o.persistence ? o.persistence : 4;
    o.slowdown = o.slowdown != 0 ? o.slowdown : 1.25;
    o.score = o.score != 0 ? o.score : 4;
    o.noise_floor = o.noise_floor != 0 ? o.noise_floor : 0.02;
    // Every comparison is false for NaN, so NaN is invalid, too.
    bool good = o.window <= DETECT_WINDOW_MAX && o.slowdown >= 1 && o.score > 0 &&
                o.noise_floor > 0 && !(o.not_peers && o.not_own);
    struct detect *d = good ? calloc(1, sizeof *d) : NULL;
    if (d)
        d->o = o;
    return d;
}

void detect_destroy(struct detect *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++)
        free(d->members[i].name);
    free(d->members);
    free(d->room);
    free(d->pooled);
    map_free(&d->numbers);
    free(d);
}

// Arrays grow by doubling, and a growing array exists twice for a moment.
size_t detect_bytes(size_t members)
{
    enum { MAP_ENTRY = 64 };
    size_t each = sizeof(struct member) + (4 + 1) * sizeof(double) + MAP_ENTRY;
    return sizeof(struct detect) + 3 * (members * each + POOLED_MAX * sizeof(double));
}

static bool grow(struct detect *d)
{
    size_t count = d->count + 1, pooled = count < POOLED_MAX ? POOLED_MAX : count;
    if (!array_room(&d->members, &d->capacity, count, sizeof *d->members) ||
        !array_room(&d->room, &d->room_capacity, 4 * count, sizeof *d->room) ||
        !array_room(&d->pooled, &d->pooled_capacity, pooled, sizeof *d->pooled))
        return false;
    d->column = d->room_capacity / 4;
    return true;
}

long detect_find(const struct detect *d, struct str name)
{
    const uint64_t *known = map_get(&d->numbers, name);
    return known ? (long)*known : -1;
}

long detect_member(struct detect *d, struct str name)
{
    long known = detect_find(d, name);
    if (known >= 0)
        return known;
    if (d->count == DETECT_MEMBERS_MAX || !grow(d))
        return -1;
    char *copy = malloc(name.size + 1);
    if (copy) {
        memcpy(copy, name.data, name.size);
        copy[name.size] = 0;
    }
    uint64_t *number = copy ? map_add(&d->numbers, (struct str){copy, name.size}, NULL) : NULL;
    if (!number) {
        free(copy);
        return -1;
    }
    *number = d->count;
    d->members[d->count] = (struct member){.name = copy,
                                           .name_size = name.size,
                                           .given = NAN,
                                           .best = NAN,
                                           .level = NAN,
                                           .verdict = {.peers = NAN, .own = NAN}};
    return (long)d->count++;
}

size_t detect_members(const struct detect *d)
{
    return d->count;
}

struct str detect_name(const struct detect *d, size_t member)
{
    return (struct str){d->members[member].name, d->members[member].name_size};
}

const struct detect_verdict *detect_verdict_of(const struct detect *d, size_t member)
{
    return &d->members[member].verdict;
}

void detect_value(struct detect *d, size_t member, double value)
{
    struct member *m = &d->members[member];
    m->gone = false;
    m->given = isfinite(value) && value > 0 ? (d->o.less_is_worse ? -log(value) : log(value)) : NAN;
}

void detect_leave(struct detect *d, size_t member)
{
    struct member *m = &d->members[member];
    m->gone = true;
    m->given = m->level = NAN;
    m->values = 0; // a returning member starts again, but keeps its best
    m->stretch_count = 0;
    m->stretch_sum = 0;
    m->judged = m->over = m->missed = 0;
    m->verdict = (struct detect_verdict){.peers = NAN, .own = NAN};
}

// ---------------------------------------------------------------- medians

// The median of all sorted values except one, which equals `without`; count > 1.
static double median_without(const double *sorted, size_t count, double without)
{
    const double *at = bsearch(&without, sorted, count, sizeof *sorted, median_ascending);
    size_t place = (size_t)(at - sorted), left = count - 1;
    size_t low = (left - 1) / 2, high = left / 2;
    return (sorted[low + (low >= place)] + sorted[high + (high >= place)]) / 2;
}

// ---------------------------------------------------------------- a round

static void take(struct member *m, unsigned window)
{
    if (m->values) {
        double before = m->last[(m->values - 1) % window];
        m->jumps[m->jump_count++ % JUMPS] = (float)fabs(m->given - before);
    }
    m->last[m->values++ % window] = m->given;
    m->stretch_sum += m->given;
    if (++m->stretch_count == DETECT_STRETCH) {
        double mean = m->stretch_sum / DETECT_STRETCH;
        if (!(m->best <= mean))
            m->best = mean;
        m->stretch_count = 0;
        m->stretch_sum = 0;
    }
    unsigned there = m->values < window ? m->values : window;
    if (there <= window / 2)
        return;
    double sorted[DETECT_WINDOW_MAX];
    memcpy(sorted, m->last, there * sizeof *sorted);
    median_sort(sorted, there);
    // While the window fills, uses the better of the two middle values, so that one outlier moves
    // nothing.
    m->level = there < window ? sorted[(there - 1) / 2] : median_of(sorted, window);
    m->widen = sqrt((double)window / there);
}

// Estimates the standard deviation of an undisturbed level from the jumps between values, over all
// members. (A jump is the difference of two values, so its deviation is √2 times that of a value;
// the deviation of the median of n values is √(π/2n) times that of a value.)
static double noise_of_levels(struct detect *d)
{
    size_t count = 0, each = d->count < POOLED_MAX ? POOLED_MAX / d->count : 1;
    for (size_t i = 0; i < d->count; i++) {
        const struct member *m = &d->members[i];
        size_t there = m->jump_count < JUMPS ? m->jump_count : JUMPS;
        for (size_t k = 0; k < there && k < each && !m->gone; k++)
            d->pooled[count++] = (double)m->jumps[(m->jump_count - 1 - k) % JUMPS];
    }
    if (!count)
        return 0;
    double value = median_unsorted(d->pooled, count) / MAD_OF_NORMAL / M_SQRT2;
    return d->o.window == 1 ? value : value * sqrt(M_PI_2 / d->o.window);
}

// A comparison of every member with the others: x[i] (NaN: unknown) minus the median of the others'
// x.
struct comparison {
    double *sorted, *apart; // of the known values: x, and |x - their median|
    size_t count;
    double median, noise; // noise: of a single x
    double floor;
    // a member over the line exceeds the others by at least `line`, and by at least `score` times
    // the noise
    double line, score;
};

// `half` of d->room: 0 or 1.
static struct comparison compare_begin(const struct detect *d, unsigned half, double noise)
{
    double *room = d->room + 2 * half * d->column;
    return (struct comparison){
        .sorted = room, .apart = room + d->column, .noise = noise, .floor = d->o.noise_floor};
}

static void compare_add(struct comparison *c, double x)
{
    if (!isnan(x))
        c->sorted[c->count++] = x;
}

// `members`: the number of compared members.
static void compare_end(struct comparison *c, const struct detect_options *o, size_t members)
{
    if (!c->count)
        return;
    // Of many members some deviate far by chance: the largest of n normal values is about √(2 ln n)
    // deviations out, which adds up like noise.
    c->line = log(o->slowdown);
    c->score = sqrt(o->score * o->score + 2 * log((double)members));
    median_sort(c->sorted, c->count);
    c->median = median_of(c->sorted, c->count);
    for (size_t i = 0; i < c->count; i++)
        c->apart[i] = fabs(c->sorted[i] - c->median);
    median_sort(c->apart, c->count);
}

// The amount by which x exceeds the others, and its significance.
struct excess {
    double by;
    double score; // in units of the noise
    // the largest noise of levels at which it is over the line; 0: at none
    float bearable;
};

// The noise of x is `widen` times the common one. `alone`: the excess of a member without others.
static struct excess compare(const struct comparison *c, double x, double widen, double alone)
{
    size_t others = c->count - 1;
    double by = others ? x - median_without(c->sorted, c->count, x) : alone;
    // The median of the others has noise, too: for one of them that of a single value, for many
    // less.
    double wide = widen * sqrt(1 + (others ? (others < 3 ? 1.0 : M_PI_2) / (double)others : 0));
    // The spread of few others is unreliable: with two others half of it counts, with many nearly
    // all.
    double spread = 0;
    if (others > 1)
        spread = median_without(c->apart, c->count, fabs(x - c->median)) / MAD_OF_NORMAL *
                 (double)(others - 1) / (double)others;
    spread = fmax(spread, c->floor);
    bool can = by >= c->line && by >= c->score * spread;
    return (struct excess){by, by / fmax(c->noise * wide, spread),
                           can ? (float)(by / c->score / wide) : 0};
}

static bool is_over(float bearable, double noise)
{
    return bearable > 0 && (double)bearable >= noise;
}

// Counts the consecutive rounds over the line by the current noise, because the noise of the first
// rounds was a guess.
static unsigned rounds_over(struct member *m, float bearable, double noise)
{
    m->bearable[m->judged++ % JUDGED] = bearable;
    unsigned there = m->judged < JUDGED ? m->judged : JUDGED, running = 0;
    while (running < there && is_over(m->bearable[(m->judged - 1 - running) % JUDGED], noise))
        running++;
    return running < JUDGED || m->over < JUDGED ? running : m->over + 1;
}

static void judge(struct detect *d, struct member *m, const struct comparison *peers,
                  const struct comparison *own)
{
    double noise = peers->noise;
    struct detect_verdict *v = &m->verdict;
    struct excess by_peers = {NAN, -INFINITY, 0}, by_own = by_peers;
    if (!d->o.not_peers && !isnan(m->level) && peers->count > 1)
        by_peers = compare(peers, m->level, m->widen, NAN);
    if (!d->o.not_own && !isnan(m->level - m->best))
        by_own = compare(own, m->level - m->best, m->widen, m->level - m->best);
    v->peers = exp(by_peers.by);
    v->own = exp(by_own.by);
    bool over_peers = is_over(by_peers.bearable, noise), over_own = is_over(by_own.bearable, noise);
    v->by_peers = over_peers;
    v->score = over_peers == over_own ? fmax(by_peers.score, by_own.score)
               : over_peers           ? by_peers.score
                                      : by_own.score;
    m->over = v->rounds = rounds_over(m, fmaxf(by_peers.bearable, by_own.bearable), noise);
    v->state = !m->over ? DETECT_GOOD : m->over < d->o.persistence ? DETECT_SUSPECT : DETECT_SLOW;
    if (isnan(by_peers.by) && isnan(by_own.by)) {
        v->state = DETECT_WAITING;
        v->score = 0;
    }
}

void detect_round(struct detect *d)
{
    size_t given = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct member *m = &d->members[i];
        if (isnan(m->given))
            continue;
        take(m, d->o.window);
        given++;
    }
    if (!given)
        return;
    double noise = noise_of_levels(d);
    struct comparison peers = compare_begin(d, 0, noise), own = compare_begin(d, 1, noise);
    for (size_t i = 0; i < d->count; i++) {
        const struct member *m = &d->members[i];
        // Members differ in speed: one that has no value in this round takes part with its earlier
        // ones, until it is silent.
        if (m->gone || (isnan(m->given) && m->missed + 1 >= d->o.persistence))
            continue;
        compare_add(&peers, m->level);
        compare_add(&own, m->level - m->best);
    }
    compare_end(&peers, &d->o, peers.count);
    compare_end(&own, &d->o, peers.count);
    for (size_t i = 0; i < d->count; i++) {
        struct member *m = &d->members[i];
        if (m->gone)
            continue;
        if (!isnan(m->given)) {
            m->missed = 0;
            judge(d, m, &peers, &own);
        } else if (++m->missed >= d->o.persistence) {
            m->verdict.state = DETECT_SILENT;
            m->verdict.rounds =
                // remembers its rounds over the line, because a member that hangs repeatedly gives
                // few values
                m->missed;
        }
        m->given = NAN;
    }
}
