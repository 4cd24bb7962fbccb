// findings_ranks.c - findings about members that are slower than the others, and about unevenly
// divided work.
#include "report/finding_hosts.h"
#include "report/findings.h"
#include "report/words.h"

enum {
    STRAGGLERS_MAX = 4, // maximum number of findings, one for each measure; the table lists members
    ROUNDS_SURE = 16,
    SPANS_A_MEMBER = 10,
};

static const double imbalance_least = 1.2;
static const double imbalance_span_share = 0.2; // share of the run

// ---------------------------------------------------------------- slower than the others

// The members that are slow in one measure, in one way: one finding.
struct slow_group {
    const struct report_straggler *first; // the worst, because the list begins with it
    struct finding_hosts members, hosts;
    uint64_t rounds_least, rounds_most;
    int64_t since_ns, until_ns;
    double least; // factor
    bool parts;   // a member is a part of a host, such as a rank
};

static bool same_group(const struct report_straggler *a, const struct report_straggler *b)
{
    return a->span == b->span && a->now == b->now && str_eq(a->what, b->what) &&
           str_eq(a->against, b->against);
}

// The value of the member's tag host; empty: it has none.
static struct str host_of(struct str member)
{
    while (member.data) {
        struct str tag = str_cut(&member, ',');
        if (str_starts(tag, STR("host=")))
            return str_slice(tag, 5, tag.size);
    }
    return (struct str){0};
}

static void add_member(struct report *r, struct slow_group *g, const struct report_straggler *s)
{
    struct str host = host_of(s->member);
    finding_hosts_add(r, &g->members, s->member);
    if (host.size)
        finding_hosts_add(r, &g->hosts, host);
    g->parts |= str_find_char(s->member, ',') >= 0;
    g->rounds_least = s->rounds < g->rounds_least ? s->rounds : g->rounds_least;
    g->rounds_most = s->rounds > g->rounds_most ? s->rounds : g->rounds_most;
    g->since_ns = s->since_ns < g->since_ns ? s->since_ns : g->since_ns;
    g->until_ns = s->until_ns > g->until_ns ? s->until_ns : g->until_ns;
    g->least = fmin(g->least, s->factor);
}

static size_t group_all(struct report *r, struct slow_group *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < r->straggler_count; i++) {
        const struct report_straggler *s = &r->stragglers[i];
        if (!(s->factor > 1))
            continue;
        size_t k = 0;
        while (k < count && !same_group(groups[k].first, s))
            k++;
        if (k == count)
            groups[count++] = (struct slow_group){.first = s,
                                                  .rounds_least = s->rounds,
                                                  .since_ns = s->since_ns,
                                                  .until_ns = s->until_ns,
                                                  .least = s->factor};
        add_member(r, &groups[k], s);
    }
    return count;
}

// "host=n1,rank=3", "n1 and n2", "12 members of n1 and n2".
static struct str who(struct report *r, const struct slow_group *g)
{
    struct str hosts = finding_hosts_names(r, &g->hosts);
    if (g->members.count == 1 || !g->hosts.count)
        return finding_names(r, &g->members);
    return g->parts ? finding_text(r, "%zu members of %.*s", g->members.count, STR_ARG(hosts))
                    : hosts;
}

static struct str group_evidence(struct report *r, const struct slow_group *g)
{
    struct str until = finding_elapsed(r, g->until_ns), names = {0}, rounds;
    unsigned long long least = g->rounds_least, most = g->rounds_most;
    rounds = least == most ? finding_text(r, "%llu rounds", most)
                           : finding_text(r, "%llu to %llu rounds", least, most);
    if (g->members.count == 1)
        return finding_text(r, "%.*s, until %.*s", STR_ARG(rounds), STR_ARG(until));
    if (g->parts) {
        struct str members = finding_names(r, &g->members);
        names = finding_text(r, "%.*s: ", STR_ARG(members));
    }
    return finding_text(r, "%.*s%.2f to %.2f times, %.*s, until %.*s; the slowest is %.*s",
                        STR_ARG(names), g->least, g->first->factor, STR_ARG(rounds), STR_ARG(until),
                        STR_ARG(g->first->member));
}

static void tell_group(struct report *r, const struct slow_group *g, struct report_finding *f)
{
    const struct report_straggler *s = g->first;
    bool several = g->members.count > 1, others = str_eq(s->against, STR("others"));
    struct str names = who(r, g), since = finding_elapsed(r, g->since_ns);
    const char *is = several  ? s->now ? "are up to" : "were up to"
                     : s->now ? "is"
                              : "was",
               *than = others    ? "the others"
                       : several ? "at their best"
                                 : "at its best";
    f->title =
        finding_text(r, "%.*s %s %.2f times as slow as %s in %.*s %s %.*s", STR_ARG(names), is,
                     s->factor, than, STR_ARG(s->what), s->now ? "since" : "from", STR_ARG(since));
    f->evidence = group_evidence(r, g);
    f->advice = g->hosts.count > 1
                    ? STR("Compare their nodes with the others (sonde probe, temperatures, clocks, "
                          "other programs on them, a switch or a file server that they share). If "
                          "it is the nodes, exclude them: sonde detect --exclude-file.")
                    : STR("Compare its node with the others (sonde probe, temperatures, clocks, "
                          "other programs on it). If it is the node, exclude it: sonde detect "
                          "--exclude-file.");
    f->value = s->factor;
    f->unit = "ratio";
    f->member = finding_hosts_list(r, &g->members);
    f->hosts = finding_hosts_list(r, &g->hosts);
    f->start_ns = g->since_ns / 1000000000 * 1000000000;
    f->end_ns = (g->until_ns / 1000000000 + 1) * 1000000000;
    if (s->span)
        f->span = s->what;
    else
        f->m = finding_text(r, "none:10s-avg:%.*s", STR_ARG(s->what));
}

void find_stragglers(struct report *r)
{
    struct slow_group *groups = arena_array(r->arena, r->straggler_count, sizeof *groups);
    size_t count = groups ? group_all(r, groups) : 0;
    for (size_t i = 0; i < count && i < STRAGGLERS_MAX; i++) {
        const struct slow_group *g = &groups[i];
        bool sure = g->first->now && g->rounds_most >= ROUNDS_SURE;
        struct report_finding *f = finding_add(r, "straggler", sure ? REPORT_SURE : REPORT_LIKELY,
                                               1 - 1 / g->first->factor);
        if (!f)
            return;
        tell_group(r, g, f);
    }
}

// ---------------------------------------------------------------- unevenly divided work

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
        f->evidence =
            finding_text(r, "%llu spans of %zu members, mean %s s", (unsigned long long)s->count,
                         s->members, words_number(s->mean_s).text);
        f->advice = STR("Divide the work evenly: the others wait for the slowest member. If its "
                        "share is not larger, see sonde detect --span.");
        f->value = s->imbalance;
        f->member = s->slowest;
        f->unit = "ratio";
        f->span = s->name;
    }
}
