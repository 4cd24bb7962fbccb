// copy_sums.c - divides time into slices, and computes their sums.
#include "ask/copy_sums.h"

#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SAMPLES_MAX = 16384,   // time stamps from which the slices' ends are chosen: 64 for each slice
    SERIES_COST = 64,      // opening a series costs as much as this many points
    STEP_SERIES = 1 << 16, // number of definitions that one step reads
};

enum stage { DEFINITIONS, POINTS, EVENTS, DONE };

// ---- hashes ----

uint64_t ask_copy_series_hash(uint64_t name, const struct store_label *labels, size_t count)
{
    uint64_t h = hash_u64(name + count);
    for (size_t i = 0; i < count; i++) {
        h = hash_bytes(labels[i].key.data, labels[i].key.size, h);
        h = hash_bytes(labels[i].value.data, labels[i].value.size, h);
    }
    return h;
}

static uint64_t metric_hash(const struct store_metric *m, uint64_t h)
{
    h = hash_bytes(m->name.data, m->name.size, h + (uint64_t)m->kind * 256 + m->level);
    h = hash_bytes(m->unit.data, m->unit.size, h);
    return hash_bytes(m->help.data, m->help.size, h);
}

uint64_t ask_copy_event_hash(const struct store_event *event)
{
    uint64_t numbers[] = {(uint64_t)event->start_ns, (uint64_t)event->end_ns, event->id,
                          event->parent, (uint64_t)event->kind};
    uint64_t h = hash_bytes(numbers, sizeof numbers, 0);
    return ask_copy_series_hash(h + ask_copy_name_hash(event->text), event->labels,
                                event->label_count);
}

#if defined(__x86_64__)
// Eight hashes at a time: 0.4 ns a point instead of 2.5.
typedef uint64_t lanes __attribute__((vector_size(64)));
enum { LANES = sizeof(lanes) / sizeof(uint64_t) };

// Adds the hashes of count / LANES * LANES points, each as ask_copy_point_hash computes it.
__attribute__((target("avx512f,avx512dq,avx512vl"))) static uint64_t hash_lanes(
    uint64_t series, const int64_t *times_ns, const double *values, size_t count)
{
    lanes sum = {0};
    uint64_t total = 0;
    for (size_t i = 0; i + LANES <= count; i += LANES) {
        lanes x, bits;
        memcpy(&x, times_ns + i, sizeof x);
        memcpy(&bits, values + i, sizeof bits);
        x = series + x * 0x9e3779b97f4a7c15u;
        x ^= x >> 32;
        x += bits * 0xd6e8feb86659fd93u;
        x ^= x >> 30; // from here on hash_u64
        x *= 0xbf58476d1ce4e5b9u;
        x ^= x >> 27;
        x *= 0x94d049bb133111ebu;
        sum += x ^ x >> 31;
    }
    for (size_t lane = 0; lane < LANES; lane++)
        total += sum[lane];
    return total;
}
#endif

uint64_t ask_copy_points_hash(uint64_t series, const int64_t *times_ns, const double *values,
                              size_t count)
{
    uint64_t sum = 0;
    size_t done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        sum = hash_lanes(series, times_ns, values, count);
        done = count / LANES * LANES;
    }
#endif
    for (size_t i = done; i < count; i++)
        sum += ask_copy_point_hash(series, times_ns[i], values[i]);
    return sum;
}

// ---- slices ----

uint32_t ask_copy_slice(const struct ask_copy_sums *sums, int64_t t_ns)
{
    size_t slice;
    SEARCH_FIRST(slice, sums->count, sums->ends[slice] >= t_ns);
    return (uint32_t)slice;
}

static bool newest(const struct store_event *event, void *user)
{
    int64_t *last_ns = user;
    if (event->start_ns > *last_ns)
        *last_ns = event->start_ns;
    return true;
}

// Collects every `every`-th time stamp of each series, at most SAMPLES_MAX in all. If `times` is
// NULL, it only counts them. *last_ns gets the latest time stamp.
static int sample(struct store_snapshot *store, int64_t from_ns, int64_t to_ns, uint64_t every,
                  int64_t *times, uint64_t *count, int64_t *last_ns)
{
    uint64_t seen = 0;
    int r = 0;
    *count = 0;
    for (uint32_t series = 0; series < store_series_count(store) && r >= 0; series++) {
        struct store_cursor *c = store_cursor_open(store, series, from_ns, to_ns);
        struct store_run run;
        if (!c)
            return -ENOMEM;
        while ((r = store_cursor_next(c, &run)) > 0) {
            const int64_t *t = NULL;
            const double *v;
            size_t n = run.count;
            if (times && (r = store_cursor_points(c, &t, &v, &n)) < 0)
                break;
            if (n && run.last_ns > *last_ns)
                *last_ns = run.last_ns;
            uint64_t first = (every - seen % every) % every;
            for (uint64_t i = first; times && i < n && *count < SAMPLES_MAX; i += every)
                times[(*count)++] = t[i];
            seen += n;
        }
        store_cursor_close(c);
    }
    if (!times)
        *count = seen;
    return r < 0 ? r : 0;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int ask_copy_sums_divide(struct store_snapshot *store, int64_t from_ns, int64_t to_ns,
                         uint32_t slices_max, struct ask_copy_sums *out)
{
    uint64_t total, sampled = 0;
    int64_t last_ns = INT64_MIN;
    *out = (struct ask_copy_sums){0};
    int64_t *times = malloc(SAMPLES_MAX * sizeof *times);
    int r = times ? sample(store, from_ns, to_ns, 1, NULL, &total, &last_ns) : -ENOMEM;
    if (r == 0)
        r = sample(store, from_ns, to_ns, total / SAMPLES_MAX + 1, times, &sampled, &last_ns);
    if (r == 0)
        r = store_events(store, from_ns, to_ns, newest, &last_ns);
    if (r == 0 && sampled)
        qsort(times, sampled, sizeof *times, compare_times);
    uint64_t slices = r ? 0 : total / ASK_COPY_SLICE_POINTS + 1;
    if (slices > slices_max)
        slices = slices_max;
    for (uint64_t i = 1; i < slices && sampled; i++) {
        int64_t end = times[i * sampled / slices];
        if ((out->count == 0 || end > out->ends[out->count - 1]) && end < last_ns)
            out->ends[out->count++] = end;
    }
    if (slices && last_ns > INT64_MIN)
        out->ends[out->count++] = last_ns;
    free(times);
    return r;
}

// ---- computing sums ----

void ask_copy_look_begin(struct ask_copy_look *l, struct store_snapshot *store, int64_t from_ns,
                         int64_t to_ns, uint32_t metrics, uint32_t series,
                         struct ask_copy_sums *sums)
{
    *l = (struct ask_copy_look){.store = store,
                                .from_ns = from_ns,
                                .to_ns = to_ns,
                                .sums = sums,
                                .metrics = metrics,
                                .series = series,
                                .stage = DEFINITIONS};
    sums->metrics = metrics;
    sums->series = series;
    sums->definitions = 0;
    for (uint32_t i = 0; i <= sums->count; i++)
        sums->points[i] = sums->events[i] = sums->point_count[i] = sums->event_count[i] = 0;
}

uint64_t ask_copy_series_hash_of(const struct store_snapshot *store, uint32_t series)
{
    struct store_series_info info;
    if (!store_series_get(store, series, &info))
        return 0;
    return ask_copy_series_hash(ask_copy_name_hash(store_metric_get(store, info.metric)->name),
                                info.labels, info.label_count);
}

// Hashes all metrics in the first step, because they are few. Series may be millions, so a step
// hashes at most STEP_SERIES of them.
static void look_at_definitions(struct ask_copy_look *l)
{
    uint64_t h = l->sums->definitions;
    if (l->next == 0)
        for (uint32_t i = 0; i < l->metrics; i++)
            h = metric_hash(store_metric_get(l->store, i), h);
    uint32_t until = l->series - l->next > STEP_SERIES ? l->next + STEP_SERIES : l->series;
    for (; l->next < until; l->next++)
        h = hash_u64(h + ask_copy_series_hash_of(l->store, l->next));
    l->sums->definitions = h;
    if (l->next < l->series)
        return;
    l->stage = POINTS;
    l->next = 0;
}

static void add_points(struct ask_copy_sums *sums, uint64_t key, const int64_t *t, const double *v,
                       size_t count)
{
    uint32_t slice = count ? ask_copy_slice(sums, t[0]) : 0;
    for (size_t i = 0; i < count; i++) {
        while (slice < sums->count && t[i] > sums->ends[slice])
            slice++;
        sums->points[slice] += ask_copy_point_hash(key, t[i], v[i]);
        sums->point_count[slice]++;
    }
}

static int look_at_points(struct ask_copy_look *l)
{
    for (uint64_t seen = 0; seen < ASK_COPY_LOOK_POINTS; seen += SERIES_COST) {
        if (!l->cursor) {
            if (l->next >= store_series_count(l->store)) {
                l->stage = EVENTS;
                return 0;
            }
            l->cursor = store_cursor_open(l->store, l->next, l->from_ns, l->to_ns);
            l->key = ask_copy_series_hash_of(l->store, l->next++);
        }
        struct store_run run;
        const int64_t *t;
        const double *v;
        size_t n = 0;
        int r = l->cursor ? store_cursor_next(l->cursor, &run) : -ENOMEM;
        if (r > 0)
            r = store_cursor_points(l->cursor, &t, &v, &n);
        else if (r == 0)
            ask_copy_look_end(l);
        if (r < 0)
            return r;
        if (n)
            add_points(l->sums, l->key, t, v, n);
        seen += n;
    }
    return 0;
}

static bool add_event(const struct store_event *event, void *user)
{
    struct ask_copy_sums *sums = user;
    uint32_t slice = ask_copy_slice(sums, event->start_ns);
    sums->events[slice] += ask_copy_event_hash(event);
    sums->event_count[slice]++;
    return true;
}

int ask_copy_look_step(struct ask_copy_look *l)
{
    int r = 0;
    if (l->stage == DEFINITIONS) {
        look_at_definitions(l);
    } else if (l->stage == POINTS) {
        r = look_at_points(l);
    } else if (l->stage == EVENTS) {
        r = store_events(l->store, l->from_ns, l->to_ns, add_event, l->sums);
        l->stage = DONE;
    }
    return r ? r : l->stage != DONE;
}

void ask_copy_look_end(struct ask_copy_look *l)
{
    store_cursor_close(l->cursor);
    l->cursor = NULL;
}

// ---- on the wire ----

void ask_copy_sums_write(const struct ask_copy_sums *sums, struct buf *out)
{
    buf_varint(out, sums->metrics);
    buf_varint(out, sums->series);
    buf_u64(out, sums->definitions);
    buf_varint(out, sums->count);
    for (uint32_t i = 0; i < sums->count; i++) {
        buf_varint(out, i ? (uint64_t)sums->ends[i] - (uint64_t)sums->ends[i - 1]
                          : zigzag(sums->ends[0]));
        buf_u64(out, sums->points[i]);
        buf_u64(out, sums->events[i]);
    }
}

int ask_copy_sums_read(struct str text, struct ask_copy_sums *out)
{
    struct bytes b = bytes_of(text.data, text.size);
    uint64_t metrics = bytes_varint(&b), series = bytes_varint(&b), definitions = bytes_u64(&b),
             count = bytes_varint(&b);
    if (b.failed || metrics > UINT32_MAX || series > UINT32_MAX || count > ASK_COPY_SLICES_MAX)
        return -EBADMSG;
    out->metrics = (uint32_t)metrics;
    out->series = (uint32_t)series;
    out->definitions = definitions;
    out->count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t more = bytes_varint(&b);
        out->ends[i] = i ? (int64_t)((uint64_t)out->ends[i - 1] + more) : unzigzag(more);
        out->points[i] = bytes_u64(&b);
        out->events[i] = bytes_u64(&b);
        if (b.failed || (i && out->ends[i] <= out->ends[i - 1]))
            return -EBADMSG;
    }
    return bytes_left(&b) ? -EBADMSG : 0;
}

// ---- comparing ----

bool ask_copy_sums_compare(const struct ask_copy_sums *ours, const struct ask_copy_sums *theirs,
                           struct ask_copy_kept *out)
{
    bool all = ours->point_count[ours->count] == 0 && ours->event_count[ours->count] == 0;
    *out = (struct ask_copy_kept){0};
    for (uint32_t i = 0; i < ours->count; i++) {
        uint8_t bit = (uint8_t)(1 << i % 8);
        bool points = ours->points[i] == theirs->points[i],
             events = ours->events[i] == theirs->events[i];
        if (points)
            out->points[i / 8] |= bit;
        if (events)
            out->events[i / 8] |= bit;
        all &= points && events;
    }
    return all;
}

size_t ask_copy_stretches(const struct ask_copy_sums *sums, const uint8_t *bits, bool kept,
                          int64_t from_ns, int64_t to_ns,
                          struct ask_copy_stretch out[ASK_COPY_STRETCHES_MAX])
{
    size_t n = 0;
    bool open = false;
    for (uint32_t i = 0; i <= sums->count; i++) {
        int64_t begin = i ? sums->ends[i - 1] : INT64_MIN,
                end = i < sums->count ? sums->ends[i] : INT64_MAX;
        bool in = ask_copy_is_kept(bits, sums, i) == kept && begin < INT64_MAX;
        if (in && !open)
            out[n++].from_ns = i ? begin + 1 : begin;
        if (in)
            out[n - 1].to_ns = end;
        open = in;
    }
    // Cut the stretches to the requested time.
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        struct ask_copy_stretch s = {out[i].from_ns > from_ns ? out[i].from_ns : from_ns,
                                     out[i].to_ns < to_ns ? out[i].to_ns : to_ns};
        if (s.from_ns <= s.to_ns)
            out[left++] = s;
    }
    return left;
}
