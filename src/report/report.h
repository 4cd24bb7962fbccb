// report.h - a report on a run: its command, its use of the nodes, and recommended changes.
//
//   a job or a recording ─▶ gather.h ─▶ struct report ─▶ findings.h ─▶ text, JSON, one HTML file
//
// The time of the run is divided into buckets of whole seconds. A measure is one metric; it has a
// line for each of its series, with statistics of all points and a value for each bucket. NaN
// always means a missing value, never 0. All memory is in the report's arena.
#ifndef SONDE_REPORT_REPORT_H
#define SONDE_REPORT_REPORT_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    REPORT_BUCKETS_MAX = 240,
    REPORT_CELLS_MAX = 60000, // buckets of all nodes
    REPORT_FINDINGS_MAX = 64,
    REPORT_OWN_MAX = 8,    // maximum number of drawn metrics of the user's programs
    REPORT_SPANS_MAX = 64, // maximum number of span names
    REPORT_KERNELS_SHOWN = 10,
    REPORT_TEXT_COLUMNS = 80,
};

// MEASURE(ID, metric, tag, kind): `tag` distinguishes the series of a node. COUNTER: buckets
// contain the change per second, and `total` is the growth over the run.
#define REPORT_MEASURES(MEASURE)                                                \
    MEASURE(CPU, "cpu_percent", "", GAUGE)                                      \
    MEASURE(CPU_BUSIEST, "cpu_core_max_percent", "", GAUGE)                     \
    MEASURE(CPU_COUNT, "cpu_count", "", GAUGE)                                  \
    MEASURE(CPU_IOWAIT, "cpu_iowait_seconds_total", "", COUNTER)                \
    MEASURE(JOB_CPU, "job_cpu_seconds_total", "", COUNTER)                      \
    MEASURE(JOB_THREADS, "job_threads", "", GAUGE)                              \
    MEASURE(JOB_MEMORY, "job_resident_bytes", "", GAUGE)                        \
    MEASURE(MEMORY, "memory_used_bytes", "", GAUGE)                             \
    MEASURE(MEMORY_TOTAL, "memory_total_bytes", "", GAUGE)                      \
    MEASURE(MEMORY_LIMIT, "cgroup_memory_limit_bytes", "", GAUGE)               \
    MEASURE(CGROUP_OOM, "cgroup_oom_kills_total", "", COUNTER)                  \
    MEASURE(CGROUP_THROTTLED, "cgroup_throttled_seconds_total", "", COUNTER)    \
    MEASURE(OOM, "oom_kills_total", "", COUNTER)                                \
    MEASURE(SWAP_IN, "swapped_in_bytes_total", "", COUNTER)                     \
    MEASURE(SWAP_OUT, "swapped_out_bytes_total", "", COUNTER)                   \
    MEASURE(PRESSURE_MEMORY, "pressure_memory_some_seconds_total", "", COUNTER) \
    MEASURE(PRESSURE_IO, "pressure_io_some_seconds_total", "", COUNTER)         \
    MEASURE(DISK_BUSY, "disk_busy_seconds_total", "device", COUNTER)            \
    MEASURE(DISK_READ, "disk_read_bytes_total", "device", COUNTER)              \
    MEASURE(DISK_WRITTEN, "disk_written_bytes_total", "device", COUNTER)        \
    MEASURE(NETWORK_IN, "network_receive_bytes_total", "interface", COUNTER)    \
    MEASURE(NETWORK_OUT, "network_transmit_bytes_total", "interface", COUNTER)  \
    MEASURE(ENERGY, "energy_joules_total", "zone", COUNTER)                     \
    MEASURE(GPU, "gpu_utilization_percent", "gpu", GAUGE)                       \
    MEASURE(GPU_MEMORY, "gpu_memory_used_bytes", "gpu", GAUGE)                  \
    MEASURE(GPU_MEMORY_TOTAL, "gpu_memory_total_bytes", "gpu", GAUGE)           \
    MEASURE(GPU_POWER, "gpu_power_watts", "gpu", GAUGE)                         \
    MEASURE(GPU_ENERGY, "gpu_energy_joules_total", "gpu", COUNTER)              \
    MEASURE(GPU_THERMAL, "gpu_throttle_thermal", "gpu", GAUGE)                  \
    MEASURE(GPU_OVERHEATED, "gpu_throttle_overheated", "gpu", GAUGE)            \
    MEASURE(GPU_BRAKE, "gpu_throttle_power_brake", "gpu", GAUGE)                \
    MEASURE(GPU_HARDWARE, "gpu_throttle_hardware", "gpu", GAUGE)

enum report_measure_id {
#define ID(id, metric, tag, kind) REPORT_##id,
    REPORT_MEASURES(ID)
#undef ID
        REPORT_MEASURES_COUNT
};

struct report_line {
    struct str host, part; // part: value of the measure's tag; empty: the whole node
    double points;         // number of points in its statistics
    double mean, peak;     // over all points; for a counter, over the buckets' rates
    double total;          // growth of a counter; else NaN
    double reached;        // greatest value of a counter; else NaN
    const double *buckets; // report.bucket_count values
};

struct report_measure {
    struct str metric, unit;
    bool counter;
    const struct report_line *lines; // sorted by host and part, in the natural order
    size_t count;
    // over all points of all lines, for each bucket; NULL: not requested
    const double *least, *greatest;
};

struct report_node {
    struct str host, state; // "live", "closed", "crashed"
    int64_t first_ns, last_ns;
};

struct report_span {
    struct str name;
    uint64_t count, unfinished;
    // A tracer records the first spans of a name in a process, and counts all: `count`, total and
    // mean are of all, the other figures of so many spans. 0: of all
    uint64_t recorded;
    double total_s, mean_s, p50_s, p95_s, max_s;
    // share of the run: the largest total time of a member, divided by the time of the run
    double share;
    size_t members; // number of ranks, workers, processes or nodes
    // largest mean of a member divided by the mean of all members; NaN: one member
    double imbalance;
    struct str slowest; // this member, "host=n1,rank=3"
    double gpu_idle;    // share of GPU samples within the spans that are below 5 %; NaN: unknown
    double gpu_samples;
    // percent of the processors of the spans' nodes while a span runs, and while none runs; NaN:
    // unknown (span_cpu.h)
    double cpu_within, cpu_outside;
    struct str outer;   // the span that contains most of its time; empty: none
    struct str inner;   // the span within it that takes the most time; empty: none
    double inner_share; // time of `inner` as a share of its time
};

struct report_straggler {
    struct str what, member; // metric or span; "host=n2,rank=3"
    bool span, now;          // now: until the end of the run
    double factor;
    struct str against; // "others" or "own best"
    uint64_t rounds;
    int64_t since_ns, until_ns;
};

// The data of --trace io for a file, over all ranks and nodes.
struct report_file {
    struct str path; // "other": all files without series of their own
    double read, written, calls;
    double seconds; // of the series with the longest time
};

enum report_library { REPORT_MPI, REPORT_NCCL };

// The time of a rank in collectives of a communicator. Only collectives count that no rank leaves
// before the last rank has entered (--trace mpi, --trace nccl).
struct report_waiting {
    enum report_library library;
    struct str rank, comm;
    double seconds;
};

// The kernels of a name, on all GPUs (--trace cuda).
struct report_kernel {
    struct str name;
    double count, seconds;
};

// Copies between GPUs and the host's pageable memory, in one direction (--trace cuda).
struct report_copies {
    struct str direction;
    double bytes;   // of all ranks
    double seconds; // of the rank with the longest time
};

enum report_sureness { REPORT_POSSIBLE, REPORT_LIKELY, REPORT_SURE };

struct report_finding {
    const char *kind; // a stable identifier: "gpu_idle"
    enum report_sureness sureness;
    double weight;       // share of the run or of the resource, 0 to 1
    struct str title;    // one line: the problem with its main figure
    struct str evidence; // the figures that prove it
    struct str advice;
    double value;     // the figure in the title
    const char *unit; // of the value: "ratio", "bytes", "seconds", …
    struct str hosts; // "n1,n2"; empty: all
    // the expression for `sonde query` that shows the evidence; empty: none
    struct str m;
    struct str span;          // name for --per-span; empty: none
    struct str member;        // the slow member, "host=n1,rank=3"; empty: it is about all members
    int64_t start_ns, end_ns; // range of the evidence, whole seconds
};

struct report_energy {
    double node_joules, gpu_joules, total_joules; // NaN: unknown
    double grams_co2;                             // NaN: the emission factor is unknown
    struct str covers;                            // "processors, memory, GPUs"
};

struct report_use {                // The use of one resource, over all nodes.
    const char *key, *name, *unit; // key: its name in JSON
    double mean, peak, total;      // NaN: unknown
};

struct report_key {
    struct str key, value;
};

enum { REPORT_USES_MAX = 16 };

struct report {
    struct arena *arena;
    struct str where; // argument that selects this run in commands; empty: the default run
    // the run
    struct str job, name, command, note, commit, branch, directory, version;
    const struct report_key *tags, *environment;
    size_t tag_count, environment_count;
    int level;
    bool running, ended; // both false: the launcher was killed, or the run is unknown
    // times of the command; if it runs or they are unknown, those of the points
    int64_t start_ns, end_ns;
    int exit_code; // valid if it ended
    unsigned restarts;
    // where
    const struct report_node *nodes;
    size_t node_count;
    size_t sample_of;      // the nodes are a sample of so many; 0: all nodes
    struct str missing;    // "n2 (late), n7 (unreadable)"; empty: none
    struct str unreadable; // unreadable files, with reasons
    uint64_t damaged_blocks;
    // data
    int64_t first_ns, bucket_ns; // start of the first bucket; length of a bucket
    int64_t sample_ns;           // between two samples of the nodes' own metrics
    bool is_cut;                 // the run ended within the last bucket
    size_t bucket_count;         // 0: no points
    int64_t from_ns, to_ns;      // the range of all statistics, whole seconds; to_ns is exclusive
    struct report_measure measures[REPORT_MEASURES_COUNT];
    struct report_measure own[REPORT_OWN_MAX];
    size_t own_count, own_total;
    struct report_span spans[REPORT_SPANS_MAX];
    size_t span_count, span_total;
    bool spans_cut; // only the first spans were read
    const struct report_straggler *stragglers;
    size_t straggler_count;
    const struct report_file *files;
    const struct report_waiting *waiting;
    const struct report_kernel *kernels; // the longest time first
    const struct report_copies *pageable;
    size_t file_count, waiting_count, kernel_count, pageable_count; // 0: the run was not traced
    // conclusions: summary.h, findings.h
    struct report_use uses[REPORT_USES_MAX];
    size_t use_count;
    struct report_energy energy;
    double grams_per_kwh; // NaN: unknown
    // sorted by sureness and weight, the highest first
    struct report_finding findings[REPORT_FINDINGS_MAX];
    size_t finding_count;
};

// The length of the run, if there are data of all of it; otherwise of the range of the statistics,
// which has whole seconds. That is too long for means of a run of a second.
static inline double report_seconds(const struct report *r)
{
    int64_t range_ns = r->to_ns - r->from_ns, run_ns = r->end_ns - r->start_ns;
    int64_t apart_ns = run_ns > range_ns ? run_ns - range_ns : range_ns - run_ns;
    // The first and the last sample come within a second of both ends, whatever the interval is.
    bool known = r->ended && run_ns > 0 && apart_ns < 4 * (int64_t)NS_PER_S;
    return (double)(known ? run_ns : range_ns) / 1e9;
}

// The time of all kernels on all GPUs.
static inline double report_kernel_seconds(const struct report *r)
{
    double all = 0;
    for (size_t i = 0; i < r->kernel_count; i++)
        all += r->kernels[i].seconds;
    return all;
}

// Writes the `sonde query` command for a finding, quoted for a shell. Writes nothing if the finding
// has no expression.
void report_query_line(const struct report *r, const struct report_finding *f, struct buf *out);

void report_text(const struct report *r, struct buf *out);
void report_json(const struct report *r, struct buf *out);
void report_spans_json(const struct report *r, struct buf *out); // only the JSON member "spans"
// One file without references to others.
void report_html(const struct report *r, struct buf *out);
// Writes the lines at the end of `sonde run`, each with the prefix "sonde: ". Writes nothing if the
// report has no findings.
void report_brief(const struct report *r, struct buf *out);

#endif
