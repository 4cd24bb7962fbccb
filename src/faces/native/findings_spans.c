// findings_spans.c - compares spans of one name: the k-th span of each member is its value in round
// k.
//
// A collective, which is a span with the tag STORE_COLLECTIVE_TAG, is not compared: its members
// wait for each other in it, so the long spans are those of the punctual ones. Nor are spans that
// take little of the members' time, because it does not matter whether they are slow.
#include "faces/native/findings.h"

#include "base/array.h"
#include "base/clock.h"

#include <stdlib.h>

enum {
    SPANS_MAX = 100000,
    SPANS_STEP = 1 << 12,
    MEMBERS_STEP = 1 << 5,
    MEMBER_TAGS_MAX = 4,
};
static const double share_least = 0.01; // of a member's time, from the first span to the last

struct span {
    int64_t start_ns, end_ns;
    size_t measure, member;
};

struct span_list {
    struct findings_search *search;
    struct span *spans;
    size_t count, capacity;
    int rc;
};

// The tags of a span's member: its node, and the first of these tags that the span has.
static size_t member_tags(const struct store_event *event, struct str host,
                          struct store_label out[MEMBER_TAGS_MAX])
{
    static const struct str keys[] = {STR("rank"), STR("worker"), STR("pid")};
    struct str own = findings_tag(event->labels, event->label_count, STR("host"));
    size_t count = 0;
    if (own.size || host.size)
        out[count++] = (struct store_label){STR("host"), own.size ? own : host};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct str value = findings_tag(event->labels, event->label_count, keys[i]);
        if (!value.size)
            continue;
        out[count++] = (struct store_label){keys[i], value};
        break;
    }
    return count;
}

static bool take_span(const struct store_event *event, struct str host,
                      const struct store_label *file_label, void *user)
{
    struct span_list *l = user;
    struct findings_search *s = l->search;
    if (event->kind != STORE_SPAN || event->end_ns == INT64_MAX ||
        findings_tag(event->labels, event->label_count, STR(STORE_UNFINISHED_TAG)).size ||
        findings_tag(event->labels, event->label_count, STR(STORE_COLLECTIVE_TAG)).size)
        return true;
    struct str job =
        file_label && str_eq(file_label->key, STR("job")) ? file_label->value : STR("");
    struct store_label tags[MEMBER_TAGS_MAX];
    // At least one step more than there are spans; in steps, because the watch takes a lock.
    size_t spans = l->count + SPANS_STEP - l->count % SPANS_STEP;
    size_t members = s->members + MEMBERS_STEP - s->members % MEMBERS_STEP;
    size_t measures = s->measure_count + MEMBERS_STEP - s->measure_count % MEMBERS_STEP;
    l->rc = findings_reserve(s, measures, members, spans, 3 * spans * sizeof *l->spans);
    if (l->rc)
        return false;
    struct findings_measure *m = findings_find_measure(s, true, event->text, job);
    long member = m ? findings_find_member(s, m, tags, member_tags(event, host, tags)) : -1;
    if (member < 0 || !array_room(&l->spans, &l->capacity, l->count + 1, sizeof *l->spans)) {
        l->rc = findings_no_memory(s);
        return false;
    }
    l->spans[l->count++] =
        (struct span){event->start_ns, event->end_ns, (size_t)(m - s->measures), (size_t)member};
    return l->count < SPANS_MAX;
}

static int by_start(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

// Whether the spans take a noticeable share of their members' time.
static bool matters(const struct findings_measure *m)
{
    double members = (double)detect_members(m->rounds.detect);
    return (double)m->taken_ns / members >= share_least * (double)(m->last_ns - m->first_ns);
}

int findings_compare_spans(struct findings_search *s)
{
    struct span_list l = {.search = s};
    struct store_event_selection selection = {
        .from_ns = s->from_ns, .to_ns = s->to_ns, .kinds = 1u << STORE_SPAN, .most = SPANS_MAX};
    int rc = reading_events(s->reading, &selection, take_span, &l, s->e);
    if (!rc)
        rc = l.rc;
    if (l.count)
        qsort(l.spans, l.count, sizeof *l.spans, by_start);
    for (size_t i = 0; i < l.count && !rc; i++) {
        const struct span *p = &l.spans[i];
        struct findings_measure *m = &s->measures[p->measure];
        m->first_ns = m->rounds.count ? m->first_ns : p->start_ns;
        m->last_ns = p->end_ns > m->last_ns ? p->end_ns : m->last_ns;
        m->taken_ns += p->end_ns - p->start_ns;
        if (rounds_add(&m->rounds,
                       (struct rounds_sample){m->spans_of[p->member]++, p->end_ns, p->member,
                                              (double)(p->end_ns - p->start_ns) / NS_PER_S}) < 0)
            rc = findings_no_memory(s);
    }
    free(l.spans);
    if (rc) {
        findings_forget(s);
        return rc;
    }
    for (size_t i = 0; i < s->measure_count; i++)
        s->measures[i].left_out = !matters(&s->measures[i]);
    return findings_judge(s);
}
