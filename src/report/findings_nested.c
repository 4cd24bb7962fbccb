// findings_nested.c - merges findings about nested spans. They share their time, so a finding about
// a span is often also found about the spans around it and within it. One of these findings stays:
//
//   the inner one    if it covers most of the outer one's trouble, because it is more precise
//   the outer one    otherwise, because it covers all of the trouble
#include "report/findings.h"

enum { DEPTH_MAX = 16 }; // limit of nesting

// if the inner span covers this share of the outer one, both findings say the same
static const double share_of_time = 0.9;
static const double share_of_excess = 0.5; // share of the time by which a slow member takes longer

static const struct report_span *span_named(const struct report *r, struct str name)
{
    for (size_t i = 0; i < r->span_count; i++)
        if (str_eq(r->spans[i].name, name))
            return &r->spans[i];
    return NULL;
}

static bool is_within(const struct report *r, const struct report_span *inner, struct str outer)
{
    for (int depth = 0; inner && inner->outer.size && depth < DEPTH_MAX; depth++) {
        if (str_eq(inner->outer, outer))
            return true;
        inner = span_named(r, inner->outer);
    }
    return false;
}

// True for findings of one kind. A member that is slower than the others has more work, or does it
// more slowly; both kinds count as one.
static bool same_kind(const struct report_finding *a, const struct report_finding *b)
{
    return a->member.size ? str_eq(a->member, b->member)
                          : !b->member.size && strcmp(a->kind, b->kind) == 0;
}

// True if the inner span's finding is more precise and covers enough.
static bool inner_explains(const struct report_finding *outer, const struct report_span *a,
                           const struct report_finding *inner, const struct report_span *b)
{
    if (!outer->member.size)
        return b->total_s >= share_of_time * a->total_s;
    return (inner->value - 1) * b->total_s >= share_of_excess * (outer->value - 1) * a->total_s;
}

static void drop(struct report *r, struct report_finding *kept, struct report_finding *dropped,
                 const char *where)
{
    kept->evidence = finding_text(r, "%.*s; the same in '%.*s', %s", STR_ARG(kept->evidence),
                                  STR_ARG(dropped->span), where);
    kept->sureness = kept->sureness > dropped->sureness ? kept->sureness : dropped->sureness;
    *dropped = r->findings[--r->finding_count];
}

// Finds two findings that say the same, and keeps one of them. Returns false if there are none.
static bool merge_two(struct report *r)
{
    for (size_t i = 0; i < r->finding_count; i++)
        for (size_t k = 0; k < r->finding_count; k++) {
            struct report_finding *outer = &r->findings[i], *inner = &r->findings[k];
            const struct report_span *a = span_named(r, outer->span),
                                     *b = span_named(r, inner->span);
            if (i == k || !a || !b || !same_kind(outer, inner) || !is_within(r, b, outer->span))
                continue;
            if (inner_explains(outer, a, inner, b))
                drop(r, inner, outer, "around it");
            else
                drop(r, outer, inner, "within it");
            return true;
        }
    return false;
}

void report_say_once(struct report *r)
{
    while (merge_two(r))
        ;
}
