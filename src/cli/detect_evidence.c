#include "cli/detect_evidence.h"

#include "base/clock.h"
#include "cli/answers.h"
#include "collect/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    GRID_NS = 10 * NS_PER_MS, // samples lie on whole multiples of their rate, which is this at least
    OFF_GRID_MAX = 1,         // the last sample of a program is taken when it ends
};

struct found {
    uint64_t off_grid;
    size_t file; // that holds the last value
    char *open;  // owned: the name of a span that has not ended; NULL: none
    int64_t open_ns;
};

struct search {
    const struct evidence_question *q;
    struct evidence *out;
    struct found *found;
    size_t file;
    int status;
};

static void count_point(struct search *s, size_t member, int64_t t_ns)
{
    struct evidence *e = &s->out[member];
    e->values++;
    s->found[member].off_grid += t_ns % GRID_NS != 0;
    if (t_ns >= e->last_ns) {
        e->last_ns = t_ns;
        s->found[member].file = s->file;
    }
}

static void count_points(struct search *s, struct store_snapshot *snapshot)
{
    uint32_t metric;
    size_t count = 0;
    if (!store_metric_find(snapshot, s->q->metric, &metric))
        return;
    const uint32_t *series = store_metric_series(snapshot, metric, &count);
    for (size_t i = 0; i < count; i++) {
        struct store_series_info info;
        struct store_run run;
        long member = store_series_get(snapshot, series[i], &info)
                          ? s->q->member_of(s->q->user, info.labels, info.label_count)
                          : -1;
        struct store_cursor *cursor =
            member < 0 ? NULL : store_cursor_open(snapshot, series[i], s->q->start_ns, s->q->end_ns);
        while (cursor && store_cursor_next(cursor, &run) > 0) {
            const int64_t *t_ns;
            const double *values;
            size_t points;
            if (store_cursor_points(cursor, &t_ns, &values, &points) < 0)
                break;
            for (size_t k = 0; k < points; k++)
                count_point(s, (size_t)member, t_ns[k]);
        }
        if (cursor)
            store_cursor_close(cursor);
    }
}

static bool take_span(const struct store_event *event, void *user)
{
    struct search *s = user;
    bool open = store_span_is_unfinished(event), counted = s->q->spans && str_eq(event->text, s->q->metric);
    if (event->kind != STORE_SPAN || !(open || counted))
        return true;
    long member = s->q->member_of(s->q->user, event->labels, event->label_count);
    if (member < 0)
        return true;
    if (!open) {
        count_point(s, (size_t)member, event->end_ns);
        return true;
    }
    struct found *f = &s->found[member];
    free(f->open);
    f->open = strndup(event->text.data, event->text.size);
    f->open_ns = event->start_ns;
    s->status = f->open ? s->status : -ENOMEM;
    return true;
}

static void write_text(struct evidence *e, const struct evidence_question *q, const struct found *f, int64_t node_ns,
                       uint64_t least)
{
    char last[64], since[64];
    const char *what = q->spans ? "span" : "value";
    answers_local_time(e->last_ns, 0, last, sizeof last);
    bool by_clock = f->off_grid <= OFF_GRID_MAX;
    e->should_go_on = true;
    if (f->open) {
        answers_local_time(f->open_ns, 0, since, sizeof since);
        snprintf(e->text, sizeof e->text, "in the span %.60s since %s", f->open, since);
    } else if (node_ns) {
        answers_local_time(node_ns, 0, since, sizeof since);
        snprintf(e->text, sizeof e->text, "nothing of its node since %s", since);
    } else if (!q->spans && collect_find(q->metric)) {
        snprintf(e->text, sizeof e->text, "its node goes on, but has not measured it since %s", last);
    } else if (!q->spans && !by_clock && e->values < least) {
        snprintf(e->text, sizeof e->text, "%llu values, the last at %s; the members that go on have at least %llu",
                 (unsigned long long)e->values, last, (unsigned long long)least);
    } else {
        e->should_go_on = false;
        snprintf(e->text, sizeof e->text, "%llu %s%s, the last at %s", (unsigned long long)e->values, what,
                 e->values == 1 ? "" : "s", last);
    }
}

static void judge(struct search *s, size_t members)
{
    const struct evidence_question *q = s->q;
    int64_t newest_ns = INT64_MIN, first_ns, last_ns;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < q->recordings->count; i++)
        if (store_time_range(q->recordings->snapshots[i], &first_ns, &last_ns) && last_ns > newest_ns)
            newest_ns = last_ns;
    for (size_t i = 0; i < members; i++)
        if (detect_verdict_of(q->detect, i)->state != DETECT_SILENT && s->out[i].values < least)
            least = s->out[i].values;
    for (size_t i = 0; i < members; i++) {
        int64_t node_ns = 0;
        if (detect_verdict_of(q->detect, i)->state != DETECT_SILENT)
            continue;
        if (s->out[i].values && store_time_range(q->recordings->snapshots[s->found[i].file], &first_ns, &last_ns) &&
            newest_ns - last_ns > q->patience_ns)
            node_ns = last_ns;
        write_text(&s->out[i], q, &s->found[i], node_ns, least == UINT64_MAX ? 0 : least);
    }
}

int evidence_gather(const struct evidence_question *q, struct evidence *out)
{
    size_t members = detect_members(q->detect);
    struct search s = {.q = q, .out = out, .found = calloc(members + 1, sizeof *s.found)};
    if (!s.found)
        return -ENOMEM;
    for (s.file = 0; s.file < q->recordings->count; s.file++) {
        if (!q->spans)
            count_points(&s, q->recordings->snapshots[s.file]);
        store_events(q->recordings->snapshots[s.file], q->start_ns, q->end_ns, take_span, &s);
    }
    judge(&s, members);
    for (size_t i = 0; i < members; i++)
        free(s.found[i].open);
    free(s.found);
    return s.status;
}
