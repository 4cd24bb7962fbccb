#include "cli/question.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/local_zone.h"
#include "cli/nearest.h"
#include "collect/collect.h"

#include <errno.h>

static bool any_has(const struct recordings *r, struct str name)
{
    uint32_t id;
    for (size_t i = 0; i < r->count; i++) {
        if (store_metric_find(r->snapshots[i], name, &id))
            return true;
    }
    return false;
}

void question_resolve(const struct recordings *r, struct query *q)
{
    const struct collect_metric *known = any_has(r, q->metric) ? NULL : collect_find(q->metric);
    if (known)
        q->metric = known->metric.name;
}

void question_unknown(const struct recordings *r, struct str name, struct error *e)
{
    struct nearest near = nearest_to(name);
    for (size_t i = 0; i < r->count; i++) {
        for (uint32_t id = 0; id < store_metric_count(r->snapshots[i]); id++)
            nearest_offer(&near, store_metric_get(r->snapshots[i], id)->name);
    }
    if (near.best.data)
        error_set(e, -ENOENT, "there is no metric '%.*s'; did you mean %.*s?", STR_ARG(name), STR_ARG(near.best));
    else
        error_set(e, -ENOENT, "there is no metric '%.*s'; sonde query --list names them", STR_ARG(name));
}

// "All of it": from the first point to the last. An answer leaves out a bucket that begins before the range (OpenTSDB's rule), so
// the range begins where the first bucket does; a calendar's begins early enough.
static void whole_range(const struct recordings *r, struct query *q)
{
    static const struct {
        char unit;
        int64_t days; // at most
    } longest[] = {{'d', 1}, {'w', 7}, {'n', 31}, {'y', 366}};
    const struct query_downsample *d = &q->downsample;
    q->start_ns = q->end_ns = 0;
    if (!recordings_range(r, &q->start_ns, &q->end_ns) || !d->on)
        return;
    if (d->all) {
        q->end_ns += 1;
    } else if (d->calendar) {
        int64_t days = 1;
        for (size_t i = 0; i < sizeof longest / sizeof longest[0]; i++) {
            if (longest[i].unit == d->unit)
                days = longest[i].days;
        }
        q->start_ns -= days * d->interval * 86400 * NS_PER_S;
    } else if (d->interval > 0) {
        int64_t before = q->start_ns % d->interval;
        q->start_ns -= before < 0 ? before + d->interval : before;
    }
}

int question_range(const struct options *o, const struct recordings *r, struct query *q, struct error *e)
{
    char zone[LOCAL_ZONE_MAX];
    struct str local = local_zone(zone);
    int64_t now_ns = clock_realtime_ns();
    whole_range(r, q);
    const char *start = options_text(o, OPT_START), *end = options_text(o, OPT_END);
    int status = 0;
    if (start) {
        status = query_parse_time(str_of(start), now_ns, local, &q->start_ns, e);
        if (status < 0)
            error_prefix(e, "--start");
    }
    if (status == 0 && end) {
        status = query_parse_time(str_of(end), now_ns, local, &q->end_ns, e);
        if (status < 0)
            error_prefix(e, "--end");
    } else if (status == 0 && q->end_ns < q->start_ns) {
        q->end_ns = now_ns; // --start lies behind the last point: there may be more soon
    }
    if (status == 0 && q->end_ns < q->start_ns)
        return error_set(e, -EINVAL, "the end lies before the start");
    return status;
}

void question_report_damage(const struct recordings *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct store_damage damage;
        store_reader_damage(r->readers[i], &damage);
        if (damage.blocks > 0)
            log_warning("%s: %llu blocks are damaged and left out (%s)", r->paths[i], (unsigned long long)damage.blocks,
                        damage.first);
    }
}
