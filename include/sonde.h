// sonde.h - put your own numbers on the time line of a job. C and C++; link with -lsonde.
//
//     #include <sonde.h>
//
//     int main(void)
//     {
//         sonde_handle loss = sonde_gauge("loss", "");
//         for (int step = 0; step < 1000; step++)
//             sonde_emit(loss, train(step));
//     }
//
// Run it with `sonde run -l 1 -- ./program`. Without that, or at level 0, every handle is 0 and
// every call is one branch.
//
// Two ways. A *point* (sonde_emit) is a value at the time of the call, about 12 ns. A *cell*
// (sonde_set, sonde_add) is updated in place and sampled by the agent, about 2 ns: for hot loops.
// Use one of the two for a metric. Either is readable when the call has returned: a program that
// asks for its own metrics (sonde_client.h) finds all that it has emitted.
//
// Any thread may call anything. Nothing here blocks, allocates per point, prints (unless SONDE_LOG
// is set) or ends the program. No call is needed at exit; emitted points arrive even if the program
// is killed. If the agent cannot keep up, libsonde drops the newest points and counts them. After
// fork() the child uses the same handles; exec() starts anew. Do not call these functions from
// signal handlers.
#ifndef SONDE_H
#define SONDE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_API __attribute__((visibility("default")))

// What a metric is called by after its definition. 0 = off: all calls take it, and do nothing.
// Valid for the life of the process and in its forked children.
typedef uint32_t sonde_handle;

enum sonde_kind {
    SONDE_GAUGE = 0,  // goes up and down: a loss, a temperature
    SONDE_COUNTER = 1 // only grows: bytes read, iterations done. Readers show its rate
};

struct sonde_tag {
    const char *key, *value;
};

struct sonde_metric {
    const char *name; // 1 to 255 bytes of [A-Za-z0-9_./:-] and letters
    const char *unit; // "bytes", "seconds"; up to 32 bytes; may be NULL
    const char *help; // a sentence; up to 4096 bytes; may be NULL
    enum sonde_kind kind;
    int level;                    // 1 to 4; 0 means 1. Above the level of the run, the handle is 0
    const struct sonde_tag *tags; // tell series of one metric apart
    // with those of the process (SONDE_TAGS, rank) and `host` at most 16
    size_t tag_count;
};

// Defines a metric, or finds it: the same name and tags give the same handle, and the first
// definition stays. Returns 0 if sonde is off, the level is above the run's, or a limit is passed
// (a bad name, too many tags, more than 131,000 metrics). libsonde counts such refusals, and
// reports them on stderr with SONDE_LOG=1. Takes about a microsecond: do it once, not per point.
static inline sonde_handle sonde_define(const struct sonde_metric *metric);
SONDE_API sonde_handle sonde_gauge(const char *name, const char *unit);
SONDE_API sonde_handle sonde_counter(const char *name, const char *unit);

// Emits a point with the current time, or with a given time (ns since the epoch). If threads or
// processes of a node emit into one series at the same moment, their points get times some
// nanoseconds apart. Of two points with the same given time, the later call wins. The agent
// replaces a given time that is more than a second ahead of the node's clock with the current time.
static inline void sonde_emit(sonde_handle metric, double value);
static inline void sonde_emit_at(sonde_handle metric, double value, int64_t time_ns);

// sonde_set sets the metric's cell; sonde_add adds an amount to the cell (negative amounts are
// fine). The cell's value is the last value set, plus the amounts that all threads have added. If
// several processes add to one counter, the agent records their sum. libsonde refuses an amount
// that would make the sum NaN or infinite, and counts it as dropped.
static inline void sonde_set(sonde_handle metric, double value);
static inline void sonde_add(sonde_handle metric, double amount);

// Metrics that are measured together: one time stamp for many values, the cheapest way to emit
// them. Handles of 0 are allowed and their values passed over; returns 0 when all are 0, and for
// more than 4096.
SONDE_API sonde_handle sonde_group(const sonde_handle *metrics, size_t count);

// One value for each metric of the group, in its order. sonde_missing() for those that could not be
// read.
static inline void sonde_emit_group(sonde_handle group, const double *values);
static inline void sonde_emit_group_at(sonde_handle group, const double *values, int64_t time_ns);

// Spans: a named stretch of time, with tags, that everything else can be asked for by ("peak memory
// per epoch"). They nest per thread, 64 deep; each begin needs its end on the same thread. A span
// that is still open when its process ends ends with the process and gets the tag unfinished=1.
//
//     sonde_span_begin("epoch", "number", "3");
//     …
//     sonde_span_end();
#define sonde_span_begin(...) sonde_span_begin_strings(__VA_ARGS__, (const char *)NULL)
// key, value, …, NULL
SONDE_API void sonde_span_begin_strings(const char *name, ...) __attribute__((sentinel));
SONDE_API void sonde_span_begin_tags(const char *name, const struct sonde_tag *tags, size_t count);
SONDE_API void sonde_span_end(void);

// A span that is over: its times in ns since the epoch. It does not nest.
SONDE_API void sonde_span_at(const char *name, int64_t start_ns, int64_t end_ns,
                             const struct sonde_tag *tags, size_t count);

// A span that is not on a thread's stack: of a coroutine, a callback, work that moves between
// threads. Any thread of the process that opened the span may close it, once; a forked child
// cannot. `parent` is the span that it is part of; NULL = none.
struct sonde_span {
    uint64_t id; // 0: not recorded
    uint64_t parent;
    int64_t start_ns;
    uint32_t process;
};
SONDE_API struct sonde_span sonde_span_open(const char *name, const struct sonde_tag *tags,
                                            size_t count, const struct sonde_span *parent);
// Name and tags once more: they are what is recorded in the end.
SONDE_API void sonde_span_close(const struct sonde_span *span, const char *name,
                                const struct sonde_tag *tags, size_t count);
// The same with a given start or end, in ns since the epoch: a caller may open a span after it has
// begun.
SONDE_API struct sonde_span sonde_span_open_at(const char *name, int64_t start_ns,
                                               const struct sonde_tag *tags, size_t count,
                                               const struct sonde_span *parent);
SONDE_API void sonde_span_close_at(const struct sonde_span *span, const char *name, int64_t end_ns,
                                   const struct sonde_tag *tags, size_t count);

// A remark at this instant, up to 4096 bytes: sonde_annotate("checkpoint written", "file", "ck-12")
#define sonde_annotate(...) sonde_annotate_strings(__VA_ARGS__, (const char *)NULL)
SONDE_API void sonde_annotate_strings(const char *text, ...) __attribute__((sentinel));
SONDE_API void sonde_annotate_tags(const char *text, const struct sonde_tag *tags, size_t count);

// Connects to the agent that listens at `socket_path`, for a program that was started without
// SONDE_SOCKET and SONDE_LEVEL (a worker that is older than its monitor). From here on the program
// emits at `level`, 1 to 4; handles that it defined before stay 0. A program that already emits
// moves to this agent with all its handles, and keeps its level; nothing happens if it is connected
// to this agent already. If the agent does not listen yet, it finds the program when it starts.
// Returns 0, -EINVAL, -ENAMETOOLONG (the socket's path) or -ENOMEM (no shared memory).
SONDE_API int sonde_connect(const char *socket_path, int level);

// The level of the run, 0 to 4; 0 when sonde is off. To leave out work that is only done for
// measuring.
SONDE_API int sonde_level(void);

// "0.1.0", of the library that is linked.
SONDE_API const char *sonde_version(void);

// How many values this process has dropped so far: a ring was full, a thread found no slot, or an
// amount was not a number. As long as no agent has attached to this process, all its emitted values
// count as well; they no longer count if an agent attaches later and reads them. Each thread that
// emits has a ring of 1 MiB; SONDE_RING_BYTES sets its size, from 128 KiB to 64 MiB, rounded up to
// a power of two.
SONDE_API uint64_t sonde_dropped(void);

// Checks whether an agent takes what this process emits. Returns 0 if an agent does, if sonde is
// off, or if the process has not defined a metric yet. Otherwise returns a negative errno, and
// writes one line into `why` (at most `size` bytes): what is wrong, and what the user can do.
// -ENOENT: the job's folder does not exist here, as in a container that does not bind it. Returns 0
// once a late agent has attached.
SONDE_API int sonde_check(char *why, size_t size);

// The value that stands for none: in a group, for a metric that could not be read. These are its
// bits, a NaN.
#define SONDE_MISSING_BITS UINT64_C(0x7ff8736f6e646500)
static inline double sonde_missing(void)
{
    uint64_t bits = SONDE_MISSING_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Behind the inline functions. Bindings may call these; the handle must not be 0 then.
SONDE_API sonde_handle sonde_define_sized(const struct sonde_metric *metric, size_t size);
SONDE_API void sonde_put_point(sonde_handle metric, double value);
SONDE_API void sonde_put_point_at(sonde_handle metric, double value, int64_t time_ns);
SONDE_API void sonde_put_row(sonde_handle group, const double *values);
SONDE_API void sonde_put_row_at(sonde_handle group, const double *values, int64_t time_ns);
SONDE_API void sonde_cell_set(sonde_handle metric, double value);
SONDE_API void sonde_cell_add(sonde_handle metric, double amount);

static inline sonde_handle sonde_define(const struct sonde_metric *metric)
{
    return sonde_define_sized(metric, sizeof *metric);
}

static inline void sonde_emit(sonde_handle metric, double value)
{
    if (metric)
        sonde_put_point(metric, value);
}

static inline void sonde_emit_at(sonde_handle metric, double value, int64_t time_ns)
{
    if (metric)
        sonde_put_point_at(metric, value, time_ns);
}

static inline void sonde_set(sonde_handle metric, double value)
{
    if (metric)
        sonde_cell_set(metric, value);
}

static inline void sonde_add(sonde_handle metric, double amount)
{
    if (metric)
        sonde_cell_add(metric, amount);
}

static inline void sonde_emit_group(sonde_handle group, const double *values)
{
    if (group)
        sonde_put_row(group, values);
}

static inline void sonde_emit_group_at(sonde_handle group, const double *values, int64_t time_ns)
{
    if (group)
        sonde_put_row_at(group, values, time_ns);
}

#ifdef __cplusplus
}
#endif

#endif
