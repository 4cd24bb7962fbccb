// findings_ranks.c - findings about members that are slower than the others, and about unevenly
// divided work.
#include "report/findings.h"

enum {
    STRAGGLERS_MAX = 4, // maximum number of findings about single members; the table lists all
    ROUNDS_SURE = 16,
    SPANS_A_MEMBER = 10,
};

static const double imbalance_least = 1.2;
static const double imbalance_span_share = 0.2; // share of the run

void find_stragglers(struct report *r)
{
    size_t added = 0;
    for (size_t i = 0; i < r->straggler_count && added < STRAGGLERS_MAX; i++) {
        const struct report_straggler *s = &r->stragglers[i];
        if (!(s->factor > 1))
            continue;
        bool sure = s->now && s->rounds >= ROUNDS_SURE;
        struct report_finding *f =
            finding_add(r, "straggler", sure ? REPORT_SURE : REPORT_LIKELY, 1 - 1 / s->factor);
        if (!f)
            return;
        added++;
        struct str since = finding_elapsed(r, s->since_ns);
        f->title = finding_text(r, "%.*s %s %.2f times as slow as %s in %.*s %s %.*s",
                                STR_ARG(s->member), s->now ? "is" : "was", s->factor,
                                str_eq(s->against, STR("others")) ? "the others" : "at its best",
                                STR_ARG(s->what), s->now ? "since" : "from", STR_ARG(since));
        f->evidence = finding_text(r, "%llu rounds, until %.*s", (unsigned long long)s->rounds,
                                   STR_ARG(finding_elapsed(r, s->until_ns)));
        f->advice =
            STR("Compare its node with the others (sonde probe, temperatures, clocks, other "
                "programs on it). If it is the node, exclude it: sonde detect --exclude-file.");
        f->value = s->factor;
        f->member = s->member;
        f->unit = "ratio";
        f->start_ns = s->since_ns / 1000000000 * 1000000000;
        f->end_ns = (s->until_ns / 1000000000 + 1) * 1000000000;
        if (s->span)
            f->span = s->what;
        else
            f->m = finding_text(r, "none:10s-avg:%.*s", STR_ARG(s->what));
        struct str rest = s->member, first = str_cut(&rest, ',');
        if (str_starts(first, STR("host=")))
            f->hosts = str_slice(first, 5, first.size);
    }
}

static bool is_straggler(const struct report *r, const struct report_span *s)
{
    for (size_t i = 0; i < r->straggler_count; i++)
        if (r->stragglers[i].span && str_eq(r->stragglers[i].what, s->name) &&
            str_eq(r->stragglers[i].member, s->slowest))
            return true;
    return false;
}

void find_imbalance(struct report *r)
{
    for (size_t i = 0; i < r->span_count && finding_is_long_enough(r); i++) {
        const struct report_span *s = &r->spans[i];
        if (s->members < 2 || !(s->imbalance >= imbalance_least) ||
            s->count < SPANS_A_MEMBER * s->members || s->share < imbalance_span_share ||
            is_straggler(r, s))
            continue;
        struct report_finding *f =
            finding_add(r, "imbalance", REPORT_LIKELY, (1 - 1 / s->imbalance) * fmin(s->share, 1));
        if (!f)
            return;
        f->title = finding_text(r, "'%.*s' takes %.*s %.0f %% longer than the mean of all",
                                STR_ARG(s->name), STR_ARG(s->slowest), (s->imbalance - 1) * 100);
        f->evidence = finding_text(r, "%llu spans of %zu members, mean %.4g s",
                                   (unsigned long long)s->count, s->members, s->mean_s);
        f->advice = STR("Divide the work evenly: the others wait for the slowest member. If its "
                        "share is not larger, see sonde detect --span.");
        f->value = s->imbalance;
        f->member = s->slowest;
        f->unit = "ratio";
        f->span = s->name;
    }
}
