// sonde.h - puts your own numbers on a job's timeline. C and C++; link with -lsonde.
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
// Run it with `sonde run -l 1 -- ./program`. Without `sonde run`, or at level 0, every handle is 0
// and every call is one branch.
//
// A metric has points or a cell; do not mix them. A *point* (sonde_emit) is a value at the time of
// the call and takes about 12 ns. A *cell* (sonde_set, sonde_add) is updated in place, which takes
// about 2 ns, and the agent samples it: for hot loops. Both are readable when the call has
// returned: a program that queries its own metrics (sonde_client.h) finds everything that it has
// emitted.
//
// All functions are thread-safe, and none is a cancellation point. None of them blocks, allocates
// memory for a point, prints (unless SONDE_LOG is set) or ends the program. No call is needed at
// exit; emitted points arrive even if the program is killed. If the agent cannot keep up, libsonde
// drops the newest points and counts them. No function needs more than 8 KiB of stack. After fork()
// the child uses the same handles; exec() starts anew. Do not call these functions from signal
// handlers.
#ifndef SONDE_H
#define SONDE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_API __attribute__((visibility("default")))

// A handle of a defined metric. 0 = off: every function accepts it and does nothing. A handle is
// valid until the process ends, and in its forked children.
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
    const struct sonde_tag *tags; // identify a series of the metric
    // At most 16, including those of the process (SONDE_TAGS, rank) and `host`.
    size_t tag_count;
};

// Defines a metric, or finds it: the same name and tags give the same handle, and the first
// definition stays. Returns 0 if sonde is off, the level is above the run's, the name is invalid,
// or a limit is exceeded (too many tags, more than 131,000 metrics). libsonde counts such errors,
// and reports them on stderr with SONDE_LOG=1. Takes about a microsecond: call it once, not per
// point.
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

// Makes a group of metrics that are measured together: one timestamp for many values, the cheapest
// way to emit them. Handles may be 0; their values are ignored. Returns 0 if all handles are 0, or
// if there are more than 4096.
SONDE_API sonde_handle sonde_group(const sonde_handle *metrics, size_t count);

// Emits one value for each metric of the group, in the group's order. Pass sonde_missing() for a
// value that could not be read.
static inline void sonde_emit_group(sonde_handle group, const double *values);
static inline void sonde_emit_group_at(sonde_handle group, const double *values, int64_t time_ns);

// Begins and ends a span: a named period of time with tags. Queries can select by span ("peak
// memory per epoch"). Spans nest per thread, up to 64 deep; each begin needs an end on the same
// thread. A span that is open when its process ends, ends with the process and gets the tag
// unfinished=1.
//
//     sonde_span_begin("epoch", "number", "3");
//     …
//     sonde_span_end();
#define sonde_span_begin(...) sonde_span_begin_strings(__VA_ARGS__, (const char *)NULL)
// key, value, …, NULL
SONDE_API void sonde_span_begin_strings(const char *name, ...) __attribute__((sentinel));
SONDE_API void sonde_span_begin_tags(const char *name, const struct sonde_tag *tags, size_t count);
SONDE_API void sonde_span_end(void);

// Records a completed span; its times are ns since the epoch. It does not nest.
SONDE_API void sonde_span_at(const char *name, int64_t start_ns, int64_t end_ns,
                             const struct sonde_tag *tags, size_t count);

// A span that belongs to no thread: of a coroutine, a callback, or work that moves between threads.
// Any thread of the process that opened the span may close it, once; a forked child cannot.
// `parent` is the span around it; NULL = none.
struct sonde_span {
    uint64_t id; // 0: not recorded
    // The rest is for libsonde only.
    uint64_t parent;
    int64_t start;
    uint32_t process;
};
SONDE_API struct sonde_span sonde_span_open(const char *name, const struct sonde_tag *tags,
                                            size_t count, const struct sonde_span *parent);
// The name and tags passed here replace those passed to sonde_span_open.
SONDE_API void sonde_span_close(const struct sonde_span *span, const char *name,
                                const struct sonde_tag *tags, size_t count);
// The same with a given start or end in ns since the epoch, for a span that began or ended earlier.
SONDE_API struct sonde_span sonde_span_open_at(const char *name, int64_t start_ns,
                                               const struct sonde_tag *tags, size_t count,
                                               const struct sonde_span *parent);
SONDE_API void sonde_span_close_at(const struct sonde_span *span, const char *name, int64_t end_ns,
                                   const struct sonde_tag *tags, size_t count);

// Records an annotation at this instant, up to 4096 bytes:
//
//     sonde_annotate("checkpoint written", "file", "ck-12");
#define sonde_annotate(...) sonde_annotate_strings(__VA_ARGS__, (const char *)NULL)
SONDE_API void sonde_annotate_strings(const char *text, ...) __attribute__((sentinel));
SONDE_API void sonde_annotate_tags(const char *text, const struct sonde_tag *tags, size_t count);

// Records parameters of the run, such as a learning rate; `sonde ls --where 'lr<0.01'` finds the
// run by them. A key has 1 to 128 bytes of [A-Za-z0-9_./:-] and letters, a value is text of up to
// 1024 bytes. Any program on any node of the job may record parameters; the last value of a key
// counts.
//
//     sonde_config("lr", "0.01", "optimizer", "adam");
#define sonde_config(...) sonde_config_strings(__VA_ARGS__, (const char *)NULL)
// key, value, …, NULL
SONDE_API void sonde_config_strings(const char *key, ...) __attribute__((sentinel));
SONDE_API void sonde_config_tags(const struct sonde_tag *parameters, size_t count);

// Connects to the agent that listens at `socket_path`, for a program that was started without
// SONDE_SOCKET and SONDE_LEVEL (such as a worker that is older than its monitor). From then on the
// program emits at `level`, 1 to 4; handles that it defined before stay 0. A program that already
// emits moves to this agent with all its handles, and keeps its level. Nothing happens if it is
// already connected to this agent. An agent that starts later finds the program.
// Returns 0, -EINVAL, -ENAMETOOLONG (the socket's path) or -ENOMEM (no shared memory).
SONDE_API int sonde_connect(const char *socket_path, int level);

// Returns the level of the run, 0 to 4; 0 if sonde is off. Use it to skip work that is only done
// for measuring.
SONDE_API int sonde_level(void);

// Returns the version of the linked library: "0.1.0".
SONDE_API const char *sonde_version(void);

// Returns the number of values that this process has dropped so far, because a ring was full, a
// thread found no slot, or an amount was not a number. Until an agent attaches to this process, all
// its emitted values count as well; they stop counting when an agent attaches and reads them. Each
// thread that emits has a ring of 1 MiB; SONDE_RING_BYTES sets its size, from 128 KiB to 64 MiB,
// rounded up to a power of two.
SONDE_API uint64_t sonde_dropped(void);

// Checks whether an agent records the values of this process. Returns 0 if an agent does, if sonde
// is off, or if the process has not defined a metric yet. Otherwise returns a negative errno, and
// writes one line into `why` (at most `size` bytes): what is wrong, and what the user can do.
// -ENOENT: the job's folder does not exist here, as in a container that does not bind it. Returns 0
// once a late agent has attached.
SONDE_API int sonde_check(char *why, size_t size);

// The missing value: in a group, for a metric that could not be read. These are its bits, a NaN.
#define SONDE_MISSING_BITS UINT64_C(0x7ff8736f6e646500)
static inline double sonde_missing(void)
{
    uint64_t bits = SONDE_MISSING_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The functions behind the inline ones. Bindings may call them; the handle must not be 0.
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
