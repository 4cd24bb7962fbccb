// cells.c - samples the cells of all programs.
//
// A metric's cell in one program is its gauge word plus the sum of what its threads have added. A
// series may have cells in several programs, which define it with the same name and tags. One of
// these programs *owns* the series: it has the series in its set of the store, and the other
// programs add to it. When the owner ends, the next program takes the series over, and the counts
// of the ended program stay in the total. A restarted agent continues from the recorded total
// (accounts.c).
//
// Untouched cells are not recorded: all-zero memory means "never set, nothing added".
#include "base/array.h"
#include "ingest/ingest_internal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

static double value_of(uint64_t word)
{
    double v;
    word ^= SEGMENT_MISSING_BITS;
    memcpy(&v, &word, sizeof v);
    return v;
}

static struct accumulator *accumulator(struct ingest *in, uint32_t series)
{
    if (!array_room_zeroed(&in->accumulator_of, &in->accumulator_of_capacity, (size_t)series + 1,
                           sizeof *in->accumulator_of))
        return NULL;
    if (!in->accumulator_of[series]) {
        if (!array_room(&in->accumulators, &in->accumulator_capacity, in->accumulator_count + 1,
                        sizeof *in->accumulators))
            return NULL;
        in->accumulators[in->accumulator_count] = (struct accumulator){.owner = INGEST_NOBODY};
        in->accumulator_of[series] = (uint32_t)++in->accumulator_count;
    }
    return &in->accumulators[in->accumulator_of[series] - 1];
}

// Starts a total from the recorded one. Until living programs join, ended programs count as the
// source of all of it.
static void begin_total(const struct ingest *in, const struct definition *d, struct accumulator *a)
{
    if (a->begun || d->kind != STORE_COUNTER)
        return;
    a->begun = true;
    a->goes_on =
        in->recorded && in->recorded(in->recorded_user, d->series, &a->base) && isfinite(a->base);
    if (!a->goes_on)
        a->base = 0;
    a->gone = a->base;
}

static bool add_cell(struct ingest *in, struct program *p, uint32_t definition)
{
    struct cells *c = &p->cells;
    const struct definition *d = &p->definitions[definition];
    size_t needed = c->count + 1, capacity = c->capacity;
    size_t chunks_needed = c->count / INGEST_CELL_CHUNK + 1, chunks = c->chunks;
    struct accumulator *a = accumulator(in, d->series);
    if (!a || !array_room(&c->definitions, &capacity, needed, sizeof *c->definitions) ||
        !array_room(&c->values, &c->capacity, needed, sizeof *c->values) ||
        !array_room_zeroed(&c->sets, &chunks, chunks_needed, sizeof *c->sets) ||
        !array_room_zeroed(&c->set_columns, &c->chunks, chunks_needed, sizeof *c->set_columns))
        return false;
    p->definitions[definition].has_cell = true;
    begin_total(in, d, a);
    double counted; // keeps its value if the cell has become NaN
    bool joined = d->kind == STORE_COUNTER && accounts_join(in, p, definition, a, &counted);
    c->values[c->count] = joined ? counted : store_missing();
    c->definitions[c->count++] = definition;
    return true;
}

// Adds the counter cells at `area` to the sums. It reads the cells of handles below `end`.
static void add_cells(struct program *p, const char *area, uint32_t end)
{
    const volatile double *cell = (const volatile double *)(const volatile void *)area;
    for (uint32_t i = 0; i < end && i < p->definition_count; i++)
        p->cells.sums[i] += cell[i];
}

// Reads the program's cells, and appends new cells to its list.
static void read_cells(struct ingest *in, struct program *p)
{
    const struct segment_header *h = (const struct segment_header *)(const void *)p->base;
    struct cells *c = &p->cells;
    program_definitions(in, p);
    if (p->definition_count == 0 ||
        !array_room(&c->sums, &c->sums_capacity, p->definition_count, sizeof *c->sums))
        return;
    memset(c->sums, 0, p->definition_count * sizeof *c->sums);
    // Acquire: these rings have been laid out. Below, acquire: the cells before each end have
    // memory.
    uint32_t used = atomic_load_explicit(&h->slots_used, memory_order_acquire);
    for (uint32_t s = 0; s < used && s < p->slots; s++) {
        const char *slot = p->base + p->at.slots + p->at.slot_bytes * s;
        add_cells(p, slot + SLOT_CELLS,
                  atomic_load_explicit(&((const struct ring *)(const void *)slot)->cells_end,
                                       memory_order_acquire));
    }
    add_cells(p, p->base + p->at.common,
              atomic_load_explicit(&h->common_end, memory_order_acquire));
    const volatile uint64_t *gauge =
        (const volatile uint64_t *)(const volatile void *)(p->base + p->at.gauges);
    for (uint32_t i = 1; i < p->definition_count; i++) {
        if (p->definitions[i].state != DEFINITION_METRIC)
            continue;
        uint64_t word = gauge[i];
        struct definition *d = &p->definitions[i];
        if (!d->has_cell && ((word == 0 && c->sums[i] == 0) || !add_cell(in, p, i)))
            continue;
        d->has_sum = d->has_sum || c->sums[i] != 0;
        if (word)
            c->sums[i] += value_of(word);
        else if (!d->has_sum)
            c->sums[i] = store_missing(); // the program set it to the missing value
    }
    // A counter that was set to NaN or infinity keeps its last value: otherwise the totals that
    // other programs add to would be lost.
    for (size_t k = 0; k < c->count; k++) {
        double value = c->sums[c->definitions[k]];
        if (p->definitions[c->definitions[k]].kind == STORE_COUNTER && !isfinite(value))
            continue;
        uint64_t before, now; // bits, because the comparison must treat a NaN as equal to itself
        memcpy(&before, &c->values[k], sizeof before);
        memcpy(&now, &value, sizeof now);
        c->unrecorded = c->unrecorded || now != before;
        c->values[k] = value;
    }
}

// Adds `more` to a total. If the total would become infinite, it stays unchanged.
static double total_of(double total, double more)
{
    return isfinite(total + more) ? total + more : total;
}

// True if this sample includes the program.
static bool concerns(const struct program *p, enum cells_whose whose)
{
    return whose == CELLS_ALL ||
           (whose == CELLS_ENDING ? p->gone : p->cells_requested && p->cells.unrecorded);
}

static void accumulate(struct ingest *in, struct program *p, enum cells_whose whose)
{
    bool due = concerns(p, whose);
    for (size_t k = 0; k < p->cells.count; k++) {
        const struct definition *d = &p->definitions[p->cells.definitions[k]];
        struct accumulator *a = accumulator(in, d->series);
        if (a->epoch != in->epoch) {
            a->epoch = in->epoch;
            a->sum = d->kind == STORE_COUNTER ? a->gone : store_missing();
        }
        if (!store_is_missing(p->cells.values[k]))
            a->sum = d->kind == STORE_COUNTER ? total_of(a->sum, p->cells.values[k])
                                              : p->cells.values[k];
        if (due)
            a->due = in->epoch;
        if (a->owner == INGEST_NOBODY) {
            a->owner = p->id;
            a->column = (uint32_t)k;
        }
    }
}

// True if this sample records the series.
static bool is_due(const struct ingest *in, const struct accumulator *a)
{
    return a->due == in->epoch;
}

// Writes the accounts for the next agent, before any value of this sample is recorded.
static void write_accounts(struct ingest *in)
{
    uint64_t stamp = accounts_stamp(in);
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        for (size_t k = 0; p->owned && k < p->cells.count; k++) {
            uint32_t definition = p->cells.definitions[k];
            const struct definition *d = &p->definitions[definition];
            const struct accumulator *a = accumulator(in, d->series);
            if (d->kind == STORE_COUNTER && is_due(in, a) && !store_is_missing(p->cells.values[k]))
                accounts_write(p, definition, stamp, p->cells.values[k], a->sum);
        }
    }
    for (size_t i = 0; i < in->program_count; i++)
        if (in->programs[i]->owned)
            accounts_complete(in->programs[i], stamp);
}

static size_t append_chunk(struct ingest *in, struct program *p, size_t chunk, int64_t t_ns)
{
    struct cells *c = &p->cells;
    size_t from = chunk * INGEST_CELL_CHUNK,
           count = c->count - from < INGEST_CELL_CHUNK ? c->count - from : INGEST_CELL_CHUNK,
           owned = 0;
    uint32_t series[INGEST_CELL_CHUNK];
    double values[INGEST_CELL_CHUNK];
    for (size_t i = 0; i < count; i++) {
        const struct accumulator *a =
            accumulator(in, series[i] = p->definitions[c->definitions[from + i]].series);
        bool owner = a->owner == p->id && a->column == from + i && is_due(in, a);
        values[i] = owner ? a->sum : store_missing();
        owned += owner && !store_is_missing(a->sum);
    }
    if (!owned)
        return 0;
    if (c->set_columns[chunk] != count) {
        if (store_define_set(in->store, series, count, &c->sets[chunk]) != 0) {
            in->stats.dropped_limit += owned;
            return 0;
        }
        c->set_columns[chunk] = (uint32_t)count;
    }
    if (store_append_row(in->store, c->sets[chunk], t_ns, values) != 0) {
        in->stats.dropped_store += owned;
        return 0;
    }
    return owned;
}

// A query may cause a sample between an instant of regular samples and the moment when that sample
// is taken. The regular sample then gets the time of the earlier sample and replaces it, so no
// counter decreases. If the wall clock was set back by more than a second, the new time is used.
static int64_t not_before(const struct ingest *in, int64_t t_ns)
{
    return t_ns < in->sampled_ns && in->sampled_ns - t_ns < NS_PER_S ? in->sampled_ns : t_ns;
}

// True if a program that sends a query has cells that have changed since the last sample.
static bool any_requested(struct ingest *in)
{
    bool any = false;
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        if (p->owned && p->cells_requested)
            read_cells(in, p);
        any = any || concerns(p, CELLS_REQUESTED);
    }
    return any;
}

size_t cells_sample(struct ingest *in, int64_t t_ns, enum cells_whose whose)
{
    size_t cells = 0;
    if (whose == CELLS_REQUESTED && !any_requested(in))
        return 0;
    in->epoch++;
    for (size_t i = 0; i < in->program_count; i++)
        if (in->programs[i]->owned)
            read_cells(in, in->programs[i]);
    for (size_t i = 0; i < in->program_count; i++)
        if (in->programs[i]->owned)
            accumulate(in, in->programs[i], whose);
    write_accounts(in);
    in->sampled_ns = t_ns = not_before(in, t_ns);
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        if (concerns(p, whose))
            p->cells.unrecorded = false;
        for (size_t chunk = 0; chunk * INGEST_CELL_CHUNK < p->cells.count; chunk++)
            cells += append_chunk(in, p, chunk, t_ns);
    }
    return cells;
}

void cells_release(struct ingest *in, struct program *p)
{
    for (size_t k = 0; k < p->cells.count; k++) {
        const struct definition *d = &p->definitions[p->cells.definitions[k]];
        struct accumulator *a = accumulator(in, d->series);
        if (d->kind == STORE_COUNTER && !store_is_missing(p->cells.values[k]))
            a->gone = total_of(a->gone, p->cells.values[k]);
        if (a->owner == p->id)
            a->owner = INGEST_NOBODY;
    }
}

void cells_free(struct cells *c)
{
    free(c->definitions);
    free(c->values);
    free(c->sets);
    free(c->set_columns);
    free(c->sums);
}
