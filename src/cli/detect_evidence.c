#include "cli/detect_evidence.h"

#include "base/clock.h"
#include "cli/answers.h"
#include "collect/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    // the times of samples are whole multiples of their rate, which is at least this
    GRID_NS = 10 * NS_PER_MS,
    OFF_GRID_MAX = 1, // a program takes its last sample at its end, which is not on the grid
};

struct found {
    uint64_t off_grid;
    // newest point of the node that recorded the member's last value; 0: unknown
    int64_t node_last_ns;
    char *open; // name of an open span, owned; NULL: none
    int64_t open_ns;
};

struct search {
    const struct evidence_question *q;
    struct evidence *out;
    struct found *found;
    struct arena arena;
    json_t *nodes;
    struct error *e;
};

static long member_of(struct search *s, const json_t *row)
{
    size_t count;
    struct store_label *labels =
        data_request_labels(json_object_get(row, "tags"), &s->arena, &count);
    return labels ? s->q->member_of(s->q->user, labels, count) : -1;
}

static void add_values(struct search *s, size_t member, uint64_t count, int64_t last_ns,
                       int64_t node_last_ns)
{
    struct evidence *e = &s->out[member];
    e->values += count;
    if (count && last_ns >= e->last_ns) {
        e->last_ns = last_ns;
        s->found[member].node_last_ns = node_last_ns;
    }
}

// Counts the recorded points of each member, on their nodes.
static int count_points(struct search *s)
{
    struct buf path = {0}, name = {0};
    json_t *series;
    buf_add_str(&name, s->q->metric);
    buf_printf(&path, "/sonde/v1/series?points&limit=0&grid=%lld", (long long)GRID_NS);
    client_add_parameter(&path, "match", buf_cstr(&name));
    data_request_add_range(&path, &s->q->range);
    int status = data_request_list(s->q->asking, buf_cstr(&path), "series", &series, s->e);
    for (size_t i = 0; !status && i < json_array_size(series); i++) {
        const json_t *row = json_array_get(series, i);
        long member = member_of(s, row);
        if (member < 0)
            continue;
        add_values(s, (size_t)member, (uint64_t)data_request_number(row, "points"),
                   data_request_number(row, "last_ns"), data_request_number(row, "node_last_ns"));
        s->found[member].off_grid += (uint64_t)data_request_number(row, "off_grid");
    }
    if (!status)
        json_decref(series);
    buf_free(&path);
    buf_free(&name);
    return status;
}

static int64_t node_last_ns(const struct search *s, const char *host)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < json_array_size(s->nodes); i++) {
        const json_t *node = json_array_get(s->nodes, i);
        int64_t one_ns = data_request_number(node, "last_ns");
        if (one_ns > last_ns && (!host || strcmp(data_request_text(node, "host"), host) == 0))
            last_ns = one_ns;
    }
    return last_ns;
}

// Counts the open spans if `name` is NULL, else the ended spans of that name.
static int count_spans(struct search *s, const char *name)
{
    json_t *spans;
    int status = data_request_spans(s->q->asking, &s->q->range, name, !name, &spans, s->e);
    for (size_t i = 0; !status && i < json_array_size(spans); i++) {
        const json_t *row = json_array_get(spans, i);
        bool open = !json_object_get(row, "end_ns") ||
                    json_object_get(json_object_get(row, "tags"), STORE_UNFINISHED_TAG);
        long member = open == !name ? member_of(s, row) : -1;
        if (member < 0)
            continue;
        if (name) {
            add_values(s, (size_t)member, 1, data_request_number(row, "end_ns"),
                       node_last_ns(s, data_request_text(row, "node")));
            continue;
        }
        struct found *f = &s->found[member];
        free(f->open);
        f->open = strdup(data_request_text(row, "name"));
        f->open_ns = data_request_number(row, "start_ns");
        if (!f->open)
            status = error_set(s->e, -ENOMEM, "no memory");
    }
    if (spans)
        json_decref(spans);
    return status;
}

static void write_text(struct evidence *e, const struct evidence_question *q, const struct found *f,
                       int64_t node_ns, uint64_t least)
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
        snprintf(e->text, sizeof e->text, "its node goes on, but has not measured it since %s",
                 last);
    } else if (!q->spans && !by_clock && e->values < least) {
        snprintf(e->text, sizeof e->text,
                 "%llu values, the last at %s; the members that go on have at least %llu",
                 (unsigned long long)e->values, last, (unsigned long long)least);
    } else {
        e->should_go_on = false;
        snprintf(e->text, sizeof e->text, "%llu %s%s, the last at %s",
                 (unsigned long long)e->values, what, e->values == 1 ? "" : "s", last);
    }
}

static void judge(struct search *s, size_t members)
{
    const struct evidence_question *q = s->q;
    int64_t newest_ns = node_last_ns(s, NULL);
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < members; i++)
        if (detect_verdict_of(q->detect, i)->state != DETECT_SILENT && s->out[i].values < least)
            least = s->out[i].values;
    for (size_t i = 0; i < members; i++) {
        int64_t last_ns = s->found[i].node_last_ns;
        if (detect_verdict_of(q->detect, i)->state != DETECT_SILENT)
            continue;
        bool lost = s->out[i].values && last_ns && newest_ns - last_ns > q->patience_ns;
        write_text(&s->out[i], q, &s->found[i], lost ? last_ns : 0,
                   least == UINT64_MAX ? 0 : least);
    }
}

int evidence_gather(const struct evidence_question *q, struct evidence *out, struct error *e)
{
    size_t members = detect_members(q->detect);
    struct search s = {.q = q, .out = out, .e = e, .found = calloc(members + 1, sizeof *s.found)};
    struct buf name = {0};
    buf_add_str(&name, q->metric);
    int status = s.found && !name.failed ? 0 : error_set(e, -ENOMEM, "no memory");
    if (!status)
        status = data_request_list(q->asking, "/sonde/v1/nodes", "nodes", &s.nodes, e);
    if (!status)
        status = q->spans ? count_spans(&s, buf_cstr(&name)) : count_points(&s);
    if (!status)
        status = count_spans(&s, NULL);
    if (!status)
        judge(&s, members);
    for (size_t i = 0; s.found && i < members; i++)
        free(s.found[i].open);
    free(s.found);
    json_decref(s.nodes);
    buf_free(&name);
    arena_free(&s.arena);
    return status;
}
