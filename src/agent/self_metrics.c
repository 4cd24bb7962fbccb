// self_metrics.c - one set with a series for each row of the catalogue's source "sonde", and one
// for each cause of dropping.
#include "agent/self_metrics.h"

#include "base/clock.h"
#include "collect/catalogue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum cause { RING_FULL, RING_CORRUPT, LIMIT, REFUSED, BAD_LINE, QUEUE_FULL, CAUSES };

static const struct str cause_names[CAUSES] = {
    [RING_FULL] = {"ring_full", 9},        // a program wrote faster than the agent read
    [RING_CORRUPT] = {"ring_corrupt", 12}, // the contents of the shared memory were invalid
    [LIMIT] = {"limit", 5},                // names, tags or series over a limit
    [REFUSED] = {"refused", 7},            // the store refused the value: no space, too old
    [BAD_LINE] = {"bad_line", 8},          // text that could not be parsed
    [QUEUE_FULL] = {"queue_full", 10},     // samples for which the queue had no free place
};

enum {
    SERIES_MAX = 32,
    LEVEL_ALL = 4, // below this level, only losses are recorded
};

struct self_metrics {
    struct store *store;
    const struct store_label *labels;
    size_t label_count;
    int level;
    bool defined;
    uint32_t set;
    int64_t second; // second of the last row
    size_t count;
    enum metric_symbol row[SERIES_MAX];
    int statm;
    double page_bytes;
};

static int define_row(struct self_metrics *o, enum metric_symbol row,
                      const struct store_label *labels, size_t label_count, uint32_t *ids)
{
    if (o->count == SERIES_MAX)
        return -E2BIG;
    uint32_t metric;
    int failed = store_define_metric(o->store, &catalogue_metrics[row].metric, &metric);
    if (!failed)
        failed = store_define_series(o->store, metric, labels, label_count, &ids[o->count]);
    if (!failed)
        o->row[o->count++] = row;
    return failed;
}

static int define(struct self_metrics *o)
{
    const struct store_label *labels = o->labels;
    size_t label_count = o->label_count;
    o->count = 0;
    uint32_t ids[SERIES_MAX];
    enum metric_symbol first;
    size_t rows = catalogue_rows(STR("sonde"), &first);
    struct store_label with_cause[STORE_LABELS_MAX];
    if (label_count >= STORE_LABELS_MAX)
        return -E2BIG;
    memcpy(with_cause, labels, label_count * sizeof *labels);
    for (size_t i = 0; i < rows; i++) {
        enum metric_symbol row = first + (enum metric_symbol)i;
        bool by_cause = row == METRIC_SONDE_DROPPED;
        if (row == METRIC_SONDE_SCRIPT_EXIT ||
            // other parts record these rows: scripts.c and the aggregator
            row == METRIC_SONDE_REQUEST_TIME)
            continue;
        if (catalogue_metrics[row].metric.level > o->level)
            continue;
        for (size_t cause = 0; cause < (by_cause ? CAUSES : 1); cause++) {
            with_cause[label_count] = (struct store_label){STR("cause"), cause_names[cause]};
            int failed = define_row(o, row, with_cause, label_count + by_cause, ids);
            if (failed)
                return failed;
        }
    }
    int failed = store_define_set(o->store, ids, o->count, &o->set);
    o->defined = !failed;
    return failed;
}

struct self_metrics *self_metrics_create(struct store *store, const struct store_label *labels,
                                         size_t label_count, int level, struct error *e)
{
    struct self_metrics *o = calloc(1, sizeof *o);
    if (!o) {
        error_set(e, -ENOMEM, "no memory for the agent's own metrics");
        return NULL;
    }
    o->store = store;
    o->labels = labels;
    o->label_count = label_count;
    o->level = level;
    long page = sysconf(_SC_PAGESIZE);
    o->page_bytes = page > 0 ? (double)page : 4096;
    o->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    int failed = level >= LEVEL_ALL ? define(o) : 0;
    if (failed) {
        self_metrics_destroy(o);
        error_set(e, failed, "the store does not take the agent's own metrics: %s",
                  strerror(-failed));
        return NULL;
    }
    return o;
}

void self_metrics_destroy(struct self_metrics *o)
{
    if (!o)
        return;
    if (o->statm >= 0)
        close(o->statm);
    free(o);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

// Returns the resident memory without shared pages, which belong to the mapped file and the rings
// of programs.
static double process_memory(const struct self_metrics *o)
{
    char text[128];
    ssize_t got = o->statm >= 0 ? pread(o->statm, text, sizeof text, 0) : -1;
    struct str rest = {text, got > 0 ? (size_t)got : 0};
    uint64_t resident, shared;
    str_word(&rest);
    struct str first = str_word(&rest), second = str_word(&rest);
    if (!str_to_u64(first, &resident) || !str_to_u64(second, &shared) || shared > resident)
        return store_missing();
    return (double)(resident - shared) * o->page_bytes;
}

struct dropped {
    double by_cause[CAUSES];
};

static struct dropped count_dropped(const struct ingest *in,
                                    const struct self_metrics_figures *figures)
{
    struct ingest_stats taken;
    ingest_get_stats(in, &taken);
    return (struct dropped){{
        [RING_FULL] = (double)taken.dropped_full,
        [RING_CORRUPT] = (double)taken.dropped_corrupt,
        [LIMIT] = (double)taken.dropped_limit,
        [REFUSED] = (double)(taken.dropped_store + figures->rows_refused),
        [BAD_LINE] = (double)taken.lines_bad,
        [QUEUE_FULL] = (double)figures->sampler.dropped,
    }};
}

static double sum_of(const struct dropped *d)
{
    double all = 0;
    for (size_t i = 0; i < CAUSES; i++)
        all += d->by_cause[i];
    return all;
}

void self_metrics_note_dropped(struct self_metrics *o, const struct ingest *in,
                               const struct self_metrics_figures *figures)
{
    struct dropped dropped = count_dropped(in, figures);
    store_note_dropped(o->store, (uint64_t)sum_of(&dropped));
}

void self_metrics_be_due(struct self_metrics *o)
{
    o->second = -1;
}

int self_metrics_sample(struct self_metrics *o, const struct ingest *in,
                        const struct self_metrics_figures *figures, int64_t t_ns)
{
    if (t_ns / NS_PER_S == o->second)
        return 0;
    o->second = t_ns / NS_PER_S;
    self_metrics_note_dropped(o, in, figures);
    struct store_stats stored;
    struct ingest_stats taken;
    struct rusage usage;
    store_get_stats(o->store, &stored);
    ingest_get_stats(in, &taken);
    getrusage(RUSAGE_SELF, &usage);
    const struct connections_stats *connections = &figures->connections;
    const struct dropped dropped = count_dropped(in, figures);
    if (!o->defined) {
        int failed = sum_of(&dropped) > 0 ? define(o) : 0;
        if (failed || !o->defined)
            return failed;
    }
    const double value_of[METRIC_COUNT] = {
        [METRIC_SONDE_POINTS] = (double)stored.points,
        [METRIC_SONDE_STORE_BYTES] = (double)stored.file_bytes,
        [METRIC_SONDE_DB_SIZE] = (double)stored.file_bytes / 1e6,
        [METRIC_SONDE_SERIES] = (double)stored.series,
        [METRIC_SONDE_PROGRAMS] = (double)taken.programs,
        [METRIC_SONDE_LINES] = (double)taken.lines,
        [METRIC_SONDE_AGENT_CPU] = seconds(usage.ru_utime) + seconds(usage.ru_stime),
        [METRIC_SONDE_AGENT_MEMORY] = process_memory(o),
        [METRIC_SONDE_LATENESS] = (double)figures->sampler.lateness_ns / NS_PER_S,
        [METRIC_SONDE_SAMPLE_TIME] = (double)figures->sampler.sampling_ns / NS_PER_S,
        [METRIC_SONDE_SKIPPED] = (double)figures->sampler.skipped,
        [METRIC_SONDE_REFUSED] = (double)(connections->refused_user + connections->refused_limit +
                                          connections->refused_hello),
    };
    double values[SERIES_MAX];
    size_t cause = 0;
    for (size_t i = 0; i < o->count; i++)
        values[i] =
            o->row[i] == METRIC_SONDE_DROPPED ? dropped.by_cause[cause++] : value_of[o->row[i]];
    int failed = store_append_row(o->store, o->set, t_ns, values);
    return failed ? failed : 1;
}
