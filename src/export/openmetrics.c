// openmetrics.c - writes OpenMetrics text with the time of each value. promtool turns it into
// blocks of Prometheus (`promtool tsdb create-blocks-from openmetrics`).
//
//   # TYPE loss gauge
//   loss{host="n1",rank="3"} 0.25 1790000000.000000000
//   # EOF
//
// The format has no spans, and its counters cannot be negative or NaN.
#include "formats/openmetrics.h"
#include "export/export.h"

#include "base/clock.h"
#include "base/json_writer.h"

#include <errno.h>
#include <stdlib.h>

struct openmetrics {
    struct buf out;
    struct buf before; // the part of a series' lines before the value
    struct arena names;
    struct map taken; // names of metric families that are in use
    struct str *keys; // label name for each key of the plan
    const struct store_metric *metric;
    struct str family;
    bool counter;
};

static int no_memory(struct error *e)
{
    return error_set(e, -ENOMEM, "out of memory");
}

// Chooses label names for all keys of the export. If several keys become the same name, they get
// numbers, because otherwise two series that differ only in these keys would become one. A key that
// is a valid name stays unchanged.
static int name_keys(struct openmetrics *o, const struct export_plan *plan)
{
    struct map taken = {0};
    int rc = 0;
    o->keys = arena_array(&o->names, plan->key_count + 1, sizeof *o->keys);
    for (int plain = 1; o->keys && plain >= 0 && !rc; plain--) {
        for (size_t i = 0; i < plan->key_count && !rc; i++) {
            struct buf name = {0};
            bool added = false;
            openmetrics_add_label_name(&name, plan->keys[i]);
            if (str_eq(buf_str(&name), plan->keys[i]) == (plain == 1)) {
                size_t size = name.size;
                for (int n = 1; !added && !name.failed && !rc; n++) {
                    o->keys[i] = arena_str(&o->names, buf_str(&name));
                    if (!o->keys[i].data || !map_add(&taken, o->keys[i], &added))
                        rc = -ENOMEM;
                    name.size = size;
                    buf_printf(&name, "_%d", n + 1);
                }
                rc = name.failed ? -ENOMEM : rc;
            }
            buf_free(&name);
        }
    }
    map_free(&taken);
    return o->keys ? rc : -ENOMEM;
}

static int begin(struct export_sink *s, struct error *e)
{
    struct openmetrics *o = s->state = calloc(1, sizeof *o);
    return o && !name_keys(o, s->plan) ? 0 : no_memory(e);
}

static int begin_family(struct openmetrics *o, const struct store_metric *metric, struct error *e)
{
    o->metric = metric;
    o->counter = metric->kind == STORE_COUNTER;
    o->family = openmetrics_family(metric->name, o->counter, &o->taken, &o->names);
    if (!o->family.data)
        return no_memory(e);
    openmetrics_add_head(&o->out, o->family, o->counter, metric->unit, metric->help);
    return 0;
}

enum { LABELS_MAX = STORE_LABELS_MAX + 1 }; // one more, for `job`
_Static_assert((int)LABELS_MAX <= (int)OPENMETRICS_LABELS_MAX, "a series has no more");

static int series(struct export_sink *s, const struct export_series *series, struct error *e)
{
    struct openmetrics *o = s->state;
    struct openmetrics_label labels[LABELS_MAX];
    size_t count = series->label_count < LABELS_MAX ? series->label_count : LABELS_MAX;
    bool known = o->metric && str_eq(o->metric->name, series->metric->name);
    int rc = known ? 0 : begin_family(o, series->metric, e);
    if (rc)
        return rc;
    for (size_t i = 0, k = 0; i < count; i++) {
        while (k + 1 < s->plan->key_count && !str_eq(s->plan->keys[k], series->labels[i].key))
            k++;
        labels[i] = (struct openmetrics_label){o->keys[k], series->labels[i].value};
    }
    o->before.size = 0;
    buf_add_str(&o->before, o->family);
    buf_add_str(&o->before, o->counter ? STR("_total") : STR(""));
    openmetrics_add_labels(&o->before, labels, count);
    buf_add_char(&o->before, ' ');
    return o->before.failed ? no_memory(e) : 0;
}

// Appends seconds with all nine decimals.
static void add_time(struct buf *out, int64_t t_ns)
{
    uint64_t ns = t_ns < 0 ? 0 - (uint64_t)t_ns : (uint64_t)t_ns;
    buf_printf(out, " %s%llu.%09llu\n", t_ns < 0 ? "-" : "", (unsigned long long)(ns / NS_PER_S),
               (unsigned long long)(ns % NS_PER_S));
}

static int points(struct export_sink *s, const struct export_series *series,
                  const struct export_points *p, struct error *e)
{
    struct openmetrics *o = s->state;
    (void)series;
    for (size_t i = 0; i < p->count; i++) {
        if (o->counter && !(p->values[i] >= 0)) {
            s->left_out++;
            s->reason = "OpenMetrics' counters are neither negative nor NaN";
            continue;
        }
        buf_add_str(&o->out, buf_str(&o->before));
        openmetrics_add_value(&o->out, p->values[i]);
        add_time(&o->out, p->t_ns[i]);
        int rc = export_flush(s->out, &o->out, false, e);
        if (rc)
            return rc;
    }
    return 0;
}

static int end(struct export_sink *s, struct error *e)
{
    struct openmetrics *o = s->state;
    buf_add_str(&o->out, STR("# EOF\n"));
    return export_flush(s->out, &o->out, true, e);
}

static void release(struct export_sink *s)
{
    struct openmetrics *o = s->state;
    if (o) {
        buf_free(&o->out);
        buf_free(&o->before);
        arena_free(&o->names);
        map_free(&o->taken);
    }
    free(o);
}

const struct export_format export_openmetrics = {.name = "openmetrics",
                                                 .ending = ".om",
                                                 .is_text = true,
                                                 .no_events = true,
                                                 .begin = begin,
                                                 .series = series,
                                                 .points = points,
                                                 .end = end,
                                                 .release = release};
