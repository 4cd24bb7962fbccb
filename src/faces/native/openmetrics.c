// openmetrics.c - /metrics: the latest value of every series in OpenMetrics' text, for a Prometheus
// that scrapes.
//
//   # HELP cpu_user_seconds Processor time in programs, over all processors.
//   # TYPE cpu_user_seconds counter
//   # UNIT cpu_user_seconds seconds
//   cpu_user_seconds_total{host="node1"} 12.5 1356998400.123
//   # EOF
//
// Kind, unit and help are what the file says of the metric. Names may hold only [A-Za-z0-9_:]
// there: everything else becomes _; where that makes two metrics one, the later gets a number of
// its own behind it. Each value carries its own time: one that is asked for twice is stored once.
#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "faces/native/handlers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

enum { LABELS_MAX = STORE_LABELS_MAX + 1 }; // a file may add one

static void add_name(struct buf *out, struct str name, bool colons)
{
    if (!name.size || isdigit((unsigned char)name.data[0]))
        buf_add_char(out, '_');
    for (size_t i = 0; i < name.size; i++) {
        unsigned char c = (unsigned char)name.data[i];
        bool good = c < 0x80 && (isalnum(c) || c == '_' || (c == ':' && colons));
        buf_add_char(out, good ? (char)c : '_');
    }
}

static void add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '\n')
            buf_add_str(out, STR("\\n"));
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_add_char(out, c);
    }
}

// The family's name: a counter's without _total. One that is taken already is told apart by a hash
// of its own name.
static struct str family_of(const struct store_metric *metric, struct map *taken,
                            struct arena *arena)
{
    struct buf name = {0};
    struct str own = metric->name;
    bool added = true;
    if (metric->kind == STORE_COUNTER && str_ends(own, STR("_total")) &&
        own.size > STR("_total").size)
        own.size -= STR("_total").size;
    add_name(&name, own, true);
    struct str family = arena_str(arena, buf_str(&name));
    if (family.data && map_add(taken, family, &added) && !added) {
        buf_printf(&name, "_%08x", (unsigned)hash_bytes(metric->name.data, metric->name.size, 0));
        family = arena_str(arena, buf_str(&name));
        if (family.data)
            map_add(taken, family, NULL);
    }
    buf_free(&name);
    return family;
}

// A unit has to stand at the name's end.
static bool ends_in_unit(struct str family, struct str unit)
{
    return unit.size && family.size > unit.size && str_ends(family, unit) &&
           family.data[family.size - unit.size - 1] == '_';
}

static void write_head(struct buf *out, struct str family, const struct store_metric *metric)
{
    if (metric->help.size) {
        buf_printf(out, "# HELP %.*s ", STR_ARG(family));
        add_escaped(out, metric->help);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "# TYPE %.*s %s\n", STR_ARG(family),
               metric->kind == STORE_COUNTER ? "counter" : "gauge");
    if (ends_in_unit(family, metric->unit))
        buf_printf(out, "# UNIT %.*s %.*s\n", STR_ARG(family), STR_ARG(metric->unit));
}

// Label names that become one get _ behind them: which one is which is in their order.
static void write_labels(struct buf *out, const struct query_listed *s)
{
    struct str names[LABELS_MAX];
    struct buf text = {0};
    size_t ends[LABELS_MAX + 1] = {0},
                             count = s->label_count < LABELS_MAX ? s->label_count : LABELS_MAX;
    for (size_t i = 0; i < count; i++) {
        add_name(&text, s->labels[i].key, false);
        bool again = true;
        while (again && !text.failed) {
            again = false;
            struct str own = str_slice(buf_str(&text), ends[i], text.size);
            for (size_t k = 0; k < i && !again; k++)
                again = str_eq(own, str_slice(buf_str(&text), ends[k], ends[k + 1]));
            if (again)
                buf_add_char(&text, '_');
        }
        ends[i + 1] = text.size;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = str_slice(buf_str(&text), ends[i], ends[i + 1]);
        buf_printf(out, "%s%.*s=\"", i ? "," : "{", STR_ARG(names[i]));
        add_escaped(out, s->labels[i].value);
        buf_add_char(out, '"');
    }
    if (count)
        buf_add_char(out, '}');
    buf_free(&text);
}

static void write_value(struct buf *out, double value)
{
    char text[NUMBER_TEXT_MAX];
    if (isnan(value))
        buf_add_str(out, STR("NaN"));
    else if (isinf(value))
        buf_add_str(out, value > 0 ? STR("+Inf") : STR("-Inf"));
    else
        buf_add(out, text, number_format(text, value));
}

static void write_all(struct buf *out, const struct query_listed *all, size_t count,
                      int64_t shift_ns, struct arena *arena)
{
    struct map taken = {0};
    struct str family = {0};
    bool counter = false;
    for (size_t i = 0; i < count && !out->failed; i++) {
        const struct query_listed *s = &all[i];
        if (i == 0 || !str_eq(s->metric->name, all[i - 1].metric->name)) {
            family = family_of(s->metric, &taken, arena);
            write_head(out, family, s->metric);
            // two files may not agree: the first one's word counts
            counter = s->metric->kind == STORE_COUNTER;
        }
        if (counter && !(s->value >= 0))
            continue; // no counter is less than nothing
        buf_printf(out, "%.*s%s", STR_ARG(family), counter ? "_total" : "");
        write_labels(out, s);
        buf_add_char(out, ' ');
        write_value(out, s->value);
        buf_printf(out, " %.3f\n", (double)(s->t_ns + shift_ns) / NS_PER_S);
    }
    map_free(&taken);
}

// Of the other nodes, as the hub knows them.
static void write_clocks(struct hub *hub, struct arena *arena, struct buf *out)
{
    const struct hub_node *nodes;
    size_t count = 0;
    bool any = false;
    if (hub_nodes(hub, arena, &nodes, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!nodes[i].offset_known)
            continue;
        if (!any)
            buf_add_str(
                out,
                STR("# HELP clock_offset_seconds How far the node's clock is ahead of this one's.\n"
                    "# TYPE clock_offset_seconds gauge\n# UNIT clock_offset_seconds seconds\n"));
        any = true;
        buf_add_str(out, STR("clock_offset_seconds{host=\""));
        add_escaped(out, nodes[i].host);
        buf_add_str(out, STR("\"} "));
        write_value(out, (double)nodes[i].offset_ns / NS_PER_S);
        buf_add_char(out, '\n');
    }
}

void openmetrics_latest(struct service *service, struct request *r, struct answer *a)
{
    struct error e = {0};
    struct reading d;
    const struct query_listed *all;
    size_t count;
    struct query_series_filter f = {.latest = true, .from_ns = INT64_MIN};
    if (service_read(service, r, INT64_MAX, &d, &e) != 0) {
        answer_failure(a, &e);
        return;
    }
    if (reading_series(&d, &f, &all, &count, &e) != 0) {
        answer_failure(a, &e);
    } else {
        a->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        write_all(&a->body, all, count, service->shift_ns, &r->arena);
        if (service->reads.hub)
            write_clocks(service->reads.hub, &r->arena, &a->body);
        buf_add_str(&a->body, STR("# EOF\n"));
    }
    service_read_end(&d, a);
}
