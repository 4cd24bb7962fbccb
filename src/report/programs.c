#include "report/programs.h"

enum { AGREEMENT_BUCKETS_LEAST = 10, TENTH = 10 };

static const double correlation_least = 0.9;
static const double difference_most = 0.5; // of a standard deviation

// ---------------------------------------------------------------- figures of one metric

// The mean of all values in the buckets from `from` to before `to`.
static double mean_between(const struct report_measure *m, size_t from, size_t to)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = from; k < to; k++)
            if (!isnan(m->lines[i].buckets[k])) {
                sum += m->lines[i].buckets[k];
                count++;
            }
    return sum / count; // NaN without values
}

static bool has_value(const struct report_measure *m, size_t bucket)
{
    for (size_t i = 0; i < m->count; i++)
        if (!isnan(m->lines[i].buckets[bucket]))
            return true;
    return false;
}

static void find_ends(const struct report *r, const struct report_measure *m,
                      struct program_metric *out)
{
    size_t from = 0, to = r->bucket_count;
    while (from < to && !has_value(m, from))
        from++;
    while (to > from && !has_value(m, to - 1))
        to--;
    size_t tenth = (to - from + TENTH - 1) / TENTH;
    out->first = mean_between(m, from, from + tenth);
    out->last = mean_between(m, to - tenth, to);
}

struct program_metric program_metric_of(const struct report *r, const struct report_measure *m)
{
    struct program_metric all = {.mean = (double)NAN,
                                 .least = (double)NAN,
                                 .greatest = (double)NAN,
                                 .first = (double)NAN,
                                 .last = (double)NAN,
                                 .reached = (double)NAN};
    double sum = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct report_line *l = &m->lines[i];
        double weight = m->counter ? 1 : l->points;
        all.points += l->points;
        sum += isnan(l->mean) ? 0 : weight * l->mean;
        all.greatest = fmax(all.greatest, l->peak);
        if (!isnan(l->reached))
            all.reached = (isnan(all.reached) ? 0 : all.reached) + l->reached;
    }
    if (all.points > 0)
        all.mean = m->counter ? sum : sum / all.points;
    if (m->counter)
        return all;
    for (size_t k = 0; m->least && k < r->bucket_count; k++)
        all.least = fmin(all.least, m->least[k]);
    find_ends(r, m, &all);
    return all;
}

// ---------------------------------------------------------------- agreements

// The sums over all pairs of values; those of squared differences also for each half of the time.
struct pairs {
    double count, a, b, aa, bb, ab, differences[2], halves[2];
    size_t first, last; // buckets
};

static void add_pairs(const struct report *r, const struct report_line *a,
                      const struct report_line *b, bool halves, struct pairs *p)
{
    size_t middle = p->first + (p->last - p->first) / 2;
    for (size_t k = 0; k < r->bucket_count; k++) {
        double x = a->buckets[k], y = b->buckets[k];
        if (isnan(x) || isnan(y))
            continue;
        if (halves) {
            bool second = k > middle;
            p->differences[second] += (x - y) * (x - y);
            p->halves[second]++;
            continue;
        }
        p->first = p->count > 0 && p->first < k ? p->first : k;
        p->last = p->last > k ? p->last : k;
        p->count++;
        p->a += x;
        p->b += y;
        p->aa += x * x;
        p->bb += y * y;
        p->ab += x * y;
    }
}

// Adds the pairs of all series that both metrics have. Lines are sorted by host and part.
static void add_lines(const struct report *r, const struct report_measure *a,
                      const struct report_measure *b, bool halves, struct pairs *p)
{
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int order = str_compare_natural(a->lines[i].host, b->lines[k].host);
        order = order ? order : str_compare_natural(a->lines[i].part, b->lines[k].part);
        if (order == 0)
            add_pairs(r, &a->lines[i], &b->lines[k], halves, p);
        i += order <= 0;
        k += order >= 0;
    }
}

static bool agree(const struct report *r, const struct report_measure *a,
                  const struct report_measure *b, struct report_agreement *out)
{
    struct pairs p = {0};
    if (a->counter || b->counter || !str_eq(a->unit, b->unit))
        return false;
    add_lines(r, a, b, false, &p);
    if (p.count < AGREEMENT_BUCKETS_LEAST)
        return false;
    add_lines(r, a, b, true, &p);
    double of_a = p.aa / p.count - p.a / p.count * (p.a / p.count),
           of_b = p.bb / p.count - p.b / p.count * (p.b / p.count),
           together = p.ab / p.count - p.a / p.count * (p.b / p.count),
           difference = sqrt((p.differences[0] + p.differences[1]) / p.count);
    if (!(of_a > 0) || !(of_b > 0))
        return false;
    *out = (struct report_agreement){.a = a,
                                     .b = b,
                                     .correlation = fmin(together / sqrt(of_a * of_b), 1),
                                     .difference = difference,
                                     .first_half = sqrt(p.differences[0] / p.halves[0]),
                                     .second_half = sqrt(p.differences[1] / p.halves[1]),
                                     .buckets = (size_t)p.count};
    return out->correlation >= correlation_least &&
           difference <= difference_most * sqrt(fmin(of_a, of_b));
}

size_t program_agreements(const struct report *r, struct report_agreement out[AGREEMENTS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < r->own_count; i++)
        for (size_t k = i + 1; k < r->own_count; k++)
            count += agree(r, &r->own[i], &r->own[k], &out[count]);
    return count;
}
