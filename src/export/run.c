// run.c - passes all points and events of a source to a format, series by series or in rows.
//
// Rows: time is cut into slices of at most SLICE_POINTS points. The points of a slice are read
// series by series, sorted by time, and become rows. If a slice has more points, it is halved and
// read again. The next slice is as long as the last one, or twice as long if that one had few
// points.
#include "export/source.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

enum { SLICE_POINTS = 1 << 20, PROGRESS_POINTS = 1 << 16 };

struct cell {
    int64_t t_ns;
    double value;
    size_t series;
};

struct run {
    struct export_source *source;
    struct export_sink *sink;
    const struct export_watch *watch;
    struct export_counts *counts;
    struct error *e;
    const struct export_series *series; // the current series
    bool begun;                         // its first point was passed on
    uint64_t looked_at;                 // number of points at the last check whether to stop
    // of a slice
    struct cell *cells;
    size_t cell_count, cell_capacity;
    bool may_overflow; // the slice cannot be halved, so it may exceed the limit
};

static int look(struct run *r)
{
    uint64_t done = r->counts->points + r->counts->spans + r->counts->annotations;
    if (!r->watch || done - r->looked_at < PROGRESS_POINTS)
        return 0;
    r->looked_at = done;
    if (r->watch->stop && r->watch->stop(r->watch->user))
        return error_set(r->e, -ECANCELED, "interrupted");
    if (r->watch->progress)
        r->watch->progress(r->counts, r->watch->user);
    return 0;
}

// ---------------------------------------------------------------- series by series

static int take_points(const struct export_points *p, void *user)
{
    struct run *r = user;
    const struct export_format *f = r->sink->format;
    int rc = 0;
    if (!r->begun && f->series)
        rc = f->series(r->sink, r->series, r->e);
    r->counts->series += !r->begun;
    r->begun = true;
    if (!rc)
        rc = f->points(r->sink, r->series, p, r->e);
    r->counts->points += p->count;
    return rc ? rc : look(r);
}

static int write_series(struct run *r)
{
    const struct export_plan *plan = r->sink->plan;
    int rc = 0;
    for (size_t i = 0; i < plan->series_count && !rc; i++) {
        r->series = &plan->series[i];
        r->begun = false;
        rc = r->source->kind->points(r->source, i, INT64_MIN, INT64_MAX, take_points, r, r->e);
    }
    return rc;
}

// ---------------------------------------------------------------- rows

static int take_cells(const struct export_points *p, void *user)
{
    struct run *r = user;
    if (!r->may_overflow && r->cell_count + p->count > SLICE_POINTS)
        return -EOVERFLOW;
    if (!array_room(&r->cells, &r->cell_capacity, r->cell_count + p->count, sizeof *r->cells))
        return error_set(r->e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < p->count; i++)
        r->cells[r->cell_count++] = (struct cell){p->t_ns[i], p->values[i], r->series->index};
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

// Reads a slice. Returns 0, -EOVERFLOW if it has too many points, or another negative errno.
static int read_slice(struct run *r, int64_t from_ns, int64_t to_ns)
{
    const struct export_plan *plan = r->sink->plan;
    int rc = 0;
    r->cell_count = 0;
    r->may_overflow = from_ns == to_ns;
    for (size_t i = 0; i < plan->series_count && !rc; i++) {
        r->series = &plan->series[i];
        rc = r->source->kind->points(r->source, i, from_ns, to_ns, take_cells, r, r->e);
    }
    return rc;
}

static int write_slice(struct run *r, double *row)
{
    int rc = 0;
    if (r->cell_count)
        qsort(r->cells, r->cell_count, sizeof *r->cells, by_time);
    for (size_t i = 0, next; i < r->cell_count && !rc; i = next) {
        int64_t t_ns = r->cells[i].t_ns;
        for (next = i; next < r->cell_count && r->cells[next].t_ns == t_ns; next++)
            row[r->cells[next].series] = r->cells[next].value;
        rc = r->sink->format->row(r->sink, t_ns, row, r->e);
        for (size_t k = i; k < next; k++)
            row[r->cells[k].series] = store_missing();
        r->counts->points += next - i;
        if (!rc)
            rc = look(r);
    }
    return rc;
}

static int write_rows(struct run *r)
{
    const struct export_source *s = r->source;
    size_t columns = r->sink->plan->series_count;
    double *row = calloc(columns + 1, sizeof *row);
    if (!row)
        return error_set(r->e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < columns; i++)
        row[i] = store_missing();
    int64_t from_ns = s->first_ns;
    // length after the first nanosecond
    uint64_t length = (uint64_t)s->last_ns - (uint64_t)s->first_ns;
    int rc = 0;
    while (!rc && from_ns <= s->last_ns) {
        uint64_t left = (uint64_t)s->last_ns - (uint64_t)from_ns;
        length = length < left ? length : left;
        int64_t to_ns = (int64_t)((uint64_t)from_ns + length);
        rc = read_slice(r, from_ns, to_ns);
        if (rc == -EOVERFLOW) {
            length /= 2;
            rc = 0;
            continue;
        }
        if (!rc)
            rc = write_slice(r, row);
        if (to_ns == s->last_ns)
            break;
        from_ns = to_ns + 1;
        if (r->cell_count < SLICE_POINTS / 3 && length <= UINT64_MAX / 2)
            length = length * 2 + 1;
    }
    free(row);
    free(r->cells);
    r->counts->series = columns;
    return rc;
}

// ---------------------------------------------------------------- the whole export

static int take_event(const struct export_event *event, void *user)
{
    struct run *r = user;
    int rc = r->sink->format->event(r->sink, event, r->e);
    if (event->event.kind == STORE_SPAN)
        r->counts->spans++;
    else
        r->counts->annotations++;
    return rc ? rc : look(r);
}

int export_run(struct export_source *source, struct export_sink *sink,
               const struct export_watch *watch, struct export_counts *counts, struct error *e)
{
    struct run r = {.source = source, .sink = sink, .watch = watch, .counts = counts, .e = e};
    const struct export_format *f = sink->format;
    *counts = (struct export_counts){0};
    int rc = f->begin(sink, e);
    if (!rc && source->first_ns <= source->last_ns)
        rc = f->by_time ? write_rows(&r) : write_series(&r);
    if (!rc && sink->plan->events && !f->no_events)
        rc = source->kind->events(source, take_event, &r, e);
    if (!rc)
        rc = f->end(sink, e);
    if (f->release)
        f->release(sink);
    return rc;
}
