#include "ask/copy_draft.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

enum { POINTS_AT_ONCE = 512 };

void ask_copy_draft_free(struct ask_copy_draft *d)
{
    free(d->metrics);
    free(d->series);
    *d = (struct ask_copy_draft){0};
}

static int note(struct ask_copy_name **names, size_t *count, size_t *capacity,
                struct ask_copy_name name)
{
    if (!array_room(names, capacity, *count + 1, sizeof **names))
        return -ENOMEM;
    (*names)[(*count)++] = name;
    return 0;
}

// ---- writing ----

int ask_copy_draft_metric(struct ask_copy_draft *d, const struct store_metric *m)
{
    struct ask_copy_name name = {.hash = ask_copy_name_hash(m->name)};
    int r = store_define_metric(d->store, m, &name.id);
    return r ? r : note(&d->metrics, &d->metric_count, &d->metric_capacity, name);
}

int ask_copy_draft_series(struct ask_copy_draft *d, uint64_t metric,
                          const struct store_label *labels, size_t count)
{
    if (metric >= d->metric_count)
        return -EBADMSG;
    struct ask_copy_name name = {.hash =
                                     ask_copy_series_hash(d->metrics[metric].hash, labels, count)};
    int r = store_define_series(d->store, d->metrics[metric].id, labels, count, &name.id);
    return r ? r : note(&d->series, &d->series_count, &d->series_capacity, name);
}

int ask_copy_draft_points(struct ask_copy_draft *d, uint64_t series, const int64_t *times,
                          const double *values, size_t count)
{
    struct store_point points[POINTS_AT_ONCE];
    if (series >= d->series_count)
        return -EBADMSG;
    const struct ask_copy_name *name = &d->series[series];
    int r = 0;
    while (count && r == 0) {
        size_t n = count < POINTS_AT_ONCE ? count : POINTS_AT_ONCE;
        for (size_t i = 0; i < n; i++)
            points[i] = (struct store_point){times[i], values[i], name->id};
        d->point_sum += ask_copy_points_hash(name->hash, times, values, n);
        r = store_append_points(d->store, points, n, NULL);
        d->points += n;
        times += n;
        values += n;
        count -= n;
    }
    return r;
}

int ask_copy_draft_event(struct ask_copy_draft *d, const struct store_event *event)
{
    d->events++;
    d->event_sum += ask_copy_event_hash(event);
    return store_append_event(d->store, event);
}

// ---- keeping parts of the older copy ----

int ask_copy_stopped(const struct ask_copy_stop *stop, struct error *e)
{
    if (stop->progress)
        atomic_fetch_add(&stop->progress->steps, 1);
    if (stop->cancel && atomic_load(stop->cancel))
        return error_set(e, -ECANCELED, "the copy was cancelled");
    return stop->watch ? stop->watch->look(stop->watch->user, e) : 0;
}

struct keeping {
    struct ask_copy_draft *draft;
    struct store_snapshot *from;
    const struct ask_copy_sums *sums;
    const struct ask_copy_kept *kept;
    const struct ask_copy_stop *stop;
    struct error *e;
    int failed; // result of writing an event
};

static int keep_definitions(const struct keeping *k)
{
    struct store_series_info info;
    int r = k->sums->metrics > store_metric_count(k->from) ||
                    k->sums->series > store_series_count(k->from)
                ? -ESTALE
                : 0;
    for (uint32_t i = 0; i < k->sums->metrics && r == 0; i++)
        r = ask_copy_draft_metric(k->draft, store_metric_get(k->from, i));
    for (uint32_t i = 0; i < k->sums->series && r == 0; i++)
        r = store_series_get(k->from, i, &info)
                ? ask_copy_draft_series(k->draft, info.metric, info.labels, info.label_count)
                : -ESTALE;
    return r == -EBADMSG ? -ESTALE : r;
}

// Turns a read error into -ESTALE: the data could be read when the sums were computed, so the file
// has changed since.
static int unreadable(int code)
{
    return code < 0 && code != -ENOMEM ? -ESTALE : code;
}

static int keep_series(const struct keeping *k, uint32_t series,
                       const struct ask_copy_stretch *stretch)
{
    struct store_cursor *c = store_cursor_open(k->from, series, stretch->from_ns, stretch->to_ns);
    struct store_run run;
    int r = c ? 0 : -ENOMEM;
    while (r == 0 && (r = unreadable(store_cursor_next(c, &run))) > 0) {
        const int64_t *t;
        const double *v;
        size_t n;
        r = ask_copy_stopped(k->stop, k->e);
        if (r == 0)
            r = unreadable(store_cursor_points(c, &t, &v, &n));
        if (r == 0)
            r = ask_copy_draft_points(k->draft, series, t, v, n);
    }
    store_cursor_close(c);
    return r;
}

static bool keep_event(const struct store_event *event, void *user)
{
    struct keeping *k = user;
    if (ask_copy_is_kept(k->kept->events, k->sums, ask_copy_slice(k->sums, event->start_ns)))
        k->failed = ask_copy_draft_event(k->draft, event);
    return k->failed == 0;
}

int ask_copy_draft_keep(struct ask_copy_draft *d, const char *path,
                        const struct ask_copy_sums *sums, const struct ask_copy_kept *kept,
                        int64_t from_ns, int64_t to_ns, const struct ask_copy_stop *stop,
                        struct error *e)
{
    struct ask_copy_stretch stretches[ASK_COPY_STRETCHES_MAX];
    size_t count = ask_copy_stretches(sums, kept->points, true, from_ns, to_ns, stretches);
    struct keeping k = {.draft = d, .sums = sums, .kept = kept, .stop = stop, .e = e};
    struct store_reader *reader;
    if (store_reader_open(path, &reader, NULL) != 0)
        return -ESTALE;
    k.from = store_snapshot_open(reader);
    int r = k.from ? keep_definitions(&k) : -ENOMEM;
    for (uint32_t series = 0; series < d->series_count && r == 0; series++)
        for (size_t i = 0; i < count && r == 0; i++)
            r = keep_series(&k, series, &stretches[i]);
    if (r == 0)
        r = unreadable(store_events(k.from, from_ns, to_ns, keep_event, &k));
    if (r == 0)
        r = k.failed;
    store_snapshot_close(k.from);
    store_reader_close(reader);
    return r;
}
