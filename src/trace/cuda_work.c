// cuda_work.c - `sonde run --trace cuda`: kernels, copies and waits of programs that use CUDA.
//
// CUPTI calls buffer_full from a thread of its own, and from the threads that flush; a lock makes
// them one after another. What a program leaves on the GPU when it ends is recorded at its exit.
#include "base/clock.h"
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/cupti.h"
#include "trace/kernel_name.h"
#include "trace/names.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 256 << 10,
    BUFFER_ALIGNMENT = 8,
    BUFFERS_KEPT = 8,
    RECORDS_MAX = BUFFER_BYTES / 32, // no record is shorter
    KNOWN_KERNELS = 4096,            // kernels whose short name is known
    GPUS_MAX = 32,
    FLUSH_S = 1,
    SPANS_OF_WORK = 1000, // of a kernel's name, or of copies in one direction
};

// clang-format off
static struct name_table
    kernels = {.tag = "kernel", .metrics = {
        {"cuda_kernels", "", "kernels that have ended", SONDE_COUNTER},
        {"cuda_kernel_seconds", "seconds", "time of kernels on the GPU", SONDE_COUNTER}}},
    copies = {.tag = "direction", .second_tag = "memory", .metrics = {
        {"cuda_copies", "", "copies, and memory that was set", SONDE_COUNTER},
        {"cuda_copy_bytes", "bytes", "bytes that were copied or set", SONDE_COUNTER},
        {"cuda_copy_seconds", "seconds", "time of copies on the GPU", SONDE_COUNTER}}},
    waits = {.tag = "for", .metrics = {
        {"cuda_waits", "", "times that the program waited for the GPU", SONDE_COUNTER},
        {"cuda_wait_seconds", "seconds", "time that the program waited for the GPU", SONDE_COUNTER}}};
// clang-format on

// A GPU as CUDA numbers it in this process.
struct gpu {
    bool defined;
    sonde_handle busy;
    uint64_t busy_until; // the end of the last kernel
};

// The cells of a kernel's whole name.
struct known_kernel {
    uint64_t hash; // 0: free
    struct name_cells *cells;
};

struct interval {
    uint64_t start_ns, end_ns;
    uint32_t device;
};

static struct cupti cupti;
static sonde_handle lost, untimed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known_kernel known[KNOWN_KERNELS];
static size_t known_count;
static struct gpu gpus[GPUS_MAX];
static struct interval intervals[RECORDS_MAX];
static uint8_t *kept[BUFFERS_KEPT];
static size_t kept_count;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;

// ---- records

static struct name_cells *cells_of(const char *name)
{
    uint64_t hash = 1;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) | 1;
    size_t at = hash >> 32 & (KNOWN_KERNELS - 1);
    while (known[at].hash && known[at].hash != hash)
        at = (at + 1) & (KNOWN_KERNELS - 1);
    if (known[at].hash)
        return known[at].cells;
    char text[KERNEL_NAME_BYTES];
    kernel_name_write(name, text);
    struct name_cells *cells = names_find(&kernels, text, NULL);
    if (known_count < KNOWN_KERNELS / 2) {
        known_count++;
        known[at] = (struct known_kernel){hash, cells};
    }
    return cells;
}

static const char *gpu_text(uint32_t device, char out[12])
{
    snprintf(out, 12, "%u", (unsigned)device);
    return out;
}

static void record_span(struct name_cells *cells, const char *name, uint64_t start_ns,
                        uint64_t end_ns, uint32_t device)
{
    if (!trace_may_span(&cells->spans, SPANS_OF_WORK))
        return;
    char number[12];
    const struct sonde_tag tag = {"gpu", gpu_text(device, number)};
    sonde_span_at(name, (int64_t)start_ns, (int64_t)end_ns, &tag, 1);
}

static bool has_times(uint64_t start_ns, uint64_t end_ns)
{
    bool has = start_ns && end_ns >= start_ns;
    if (!has)
        sonde_add(untimed, 1);
    return has;
}

static double seconds(uint64_t start_ns, uint64_t end_ns)
{
    return (double)(end_ns - start_ns) / 1e9;
}

static size_t take_kernel(const struct cupti_kernel *k, size_t count)
{
    struct name_cells *cells = cells_of(k->name && k->name[0] ? k->name : "unknown");
    sonde_add(cells->metrics[0], 1);
    if (!has_times(k->start_ns, k->end_ns))
        return count;
    sonde_add(cells->metrics[1], seconds(k->start_ns, k->end_ns));
    const char *name = atomic_load_explicit(&cells->name, memory_order_relaxed);
    record_span(cells, name ? name : "other", k->start_ns, k->end_ns, k->device);
    if (k->device < GPUS_MAX && count < RECORDS_MAX)
        intervals[count++] = (struct interval){k->start_ns, k->end_ns, k->device};
    return count;
}

static void take_copy(const struct cupti_copy *c)
{
    static const char *const directions[] = {[CUPTI_HOST_TO_DEVICE] = "host to device",
                                             [CUPTI_DEVICE_TO_HOST] = "device to host",
                                             [CUPTI_DEVICE_TO_DEVICE] = "device to device",
                                             [CUPTI_HOST_TO_HOST] = "host to host",
                                             [CUPTI_GPU_TO_GPU] = "GPU to GPU"};
    const char *direction = "other", *memory = NULL;
    if (c->kind == CUPTI_SET)
        direction = "set";
    else if (c->kind == CUPTI_COPY_BETWEEN_GPUS)
        direction = "GPU to GPU";
    else if (c->copy_kind < sizeof directions / sizeof *directions && directions[c->copy_kind])
        direction = directions[c->copy_kind];
    if (c->kind == CUPTI_COPY &&
        (c->copy_kind == CUPTI_HOST_TO_DEVICE || c->copy_kind == CUPTI_DEVICE_TO_HOST)) {
        uint8_t host = c->copy_kind == CUPTI_HOST_TO_DEVICE ? c->from_memory : c->to_memory;
        memory = host == CUPTI_PAGEABLE ? "pageable" : "pinned";
    }
    struct name_cells *cells = names_find(&copies, direction, memory);
    sonde_add(cells->metrics[0], 1);
    sonde_add(cells->metrics[1], (double)c->bytes);
    if (!has_times(c->start_ns, c->end_ns))
        return;
    sonde_add(cells->metrics[2], seconds(c->start_ns, c->end_ns));
    char name[32];
    snprintf(name, sizeof name, "copy %s", direction);
    record_span(cells, c->kind == CUPTI_SET ? "set memory" : name, c->start_ns, c->end_ns,
                c->device);
}

static void take_wait(const struct cupti_wait *w)
{
    const char *what = w->wait_kind == CUPTI_WAIT_FOR_EVENT     ? "event"
                       : w->wait_kind == CUPTI_WAIT_FOR_STREAM  ? "stream"
                       : w->wait_kind == CUPTI_WAIT_FOR_CONTEXT ? "device"
                                                                : NULL;
    if (!what)
        return;
    struct name_cells *cells = names_find(&waits, what, NULL);
    sonde_add(cells->metrics[0], 1);
    if (has_times(w->start_ns, w->end_ns))
        sonde_add(cells->metrics[1], seconds(w->start_ns, w->end_ns));
}

// ---- the time in which a GPU works

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

// Adds the time in which at least one of the kernels ran.
static void add_busy(size_t count)
{
    double added[GPUS_MAX] = {0};
    qsort(intervals, count, sizeof *intervals, by_start);
    for (size_t i = 0; i < count; i++) {
        struct gpu *g = &gpus[intervals[i].device];
        uint64_t from =
            intervals[i].start_ns > g->busy_until ? intervals[i].start_ns : g->busy_until;
        if (intervals[i].end_ns <= from)
            continue;
        added[intervals[i].device] += seconds(from, intervals[i].end_ns);
        g->busy_until = intervals[i].end_ns;
    }
    for (uint32_t i = 0; i < GPUS_MAX; i++) {
        char number[12];
        const struct sonde_tag tag = {"gpu", gpu_text(i, number)};
        if (added[i] > 0 && !gpus[i].defined) {
            gpus[i].defined = true;
            gpus[i].busy = counter_define("cuda_busy_seconds", "seconds",
                                          "time in which a kernel of the program ran", &tag, 1);
        }
        sonde_add(gpus[i].busy, added[i]);
    }
}

// ---- buffers

static void buffer_wanted(uint8_t **buffer, size_t *size, size_t *records_max)
{
    pthread_mutex_lock(&keeping);
    void *memory = kept_count ? kept[--kept_count] : NULL;
    pthread_mutex_unlock(&keeping);
    *buffer = memory ? memory : aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *records_max = 0;
}

static void keep(uint8_t *buffer)
{
    pthread_mutex_lock(&keeping);
    bool full = kept_count == BUFFERS_KEPT;
    if (!full)
        kept[kept_count++] = buffer;
    pthread_mutex_unlock(&keeping);
    if (full)
        free(buffer);
}

static void buffer_full(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
    (void)context, (void)stream, (void)size;
    const void *record = NULL;
    size_t count = 0, missing = 0;
    if (!buffer)
        return;
    pthread_mutex_lock(&lock);
    while (used && cupti.next_record(buffer, used, &record) == CUPTI_SUCCESS && record) {
        uint32_t kind;
        memcpy(&kind, record, sizeof kind);
        if (kind == CUPTI_KERNEL)
            count = take_kernel(record, count);
        else if (kind == CUPTI_COPY || kind == CUPTI_COPY_BETWEEN_GPUS || kind == CUPTI_SET)
            take_copy(record);
        else if (kind == CUPTI_WAIT)
            take_wait(record);
    }
    add_busy(count);
    if (cupti.dropped(NULL, 0, &missing) == CUPTI_SUCCESS && missing)
        sonde_add(lost, (double)missing);
    pthread_mutex_unlock(&lock);
    keep(buffer);
}

// ---- start and end

static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end_comes = PTHREAD_COND_INITIALIZER;
static bool ending;
static pthread_t flusher;
static pid_t process;

static void *flush_often(void *unused)
{
    pthread_mutex_lock(&flushing);
    while (!ending) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += FLUSH_S;
        pthread_cond_timedwait(&end_comes, &flushing, &until);
        if (ending)
            break;
        pthread_mutex_unlock(&flushing);
        cupti.flush(0);
        pthread_mutex_lock(&flushing);
    }
    pthread_mutex_unlock(&flushing);
    return unused;
}

static void end_recording(void)
{
    if (getpid() != process)
        return; // a forked child has neither the thread nor CUDA
    pthread_mutex_lock(&flushing);
    ending = true;
    pthread_cond_signal(&end_comes);
    pthread_mutex_unlock(&flushing);
    pthread_join(flusher, NULL);
    cupti.flush(CUPTI_FORCED);
}

// The folder of the CUDA runtime that the program has loaded: Python packages have CUPTI in it or
// beside it.
static int find_runtime(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    const char *name = info->dlpi_name, *file = name ? strrchr(name, '/') : NULL;
    if (!file || strncmp(file, "/libcudart.so", 13) != 0)
        return 0;
    snprintf(out, PATH_MAX, "%.*s", (int)(file - name), name);
    return 1;
}

static void *open_cupti(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                        "libcupti.so"};
    static const char *const folders[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"};
    enum { NAMES = sizeof names / sizeof *names, FOLDERS = sizeof folders / sizeof *folders };
    const char *chosen = secure_getenv("SONDE_CUPTI");
    if (chosen && chosen[0])
        return dlopen(chosen, RTLD_NOW);
    void *library = NULL;
    // One that the program has loaded fits the program.
    for (size_t i = 0; i < NAMES && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    char runtime[PATH_MAX] = "", path[2 * PATH_MAX];
    dl_iterate_phdr(find_runtime, runtime);
    for (size_t k = 0; runtime[0] && k < FOLDERS; k++)
        for (size_t i = 0; i < NAMES && !library; i++) {
            snprintf(path, sizeof path, "%s%s/%s", runtime, folders[k], names[i]);
            library = dlopen(path, RTLD_NOW);
        }
    for (size_t i = 0; i < NAMES && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    return library ? library : dlopen("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", RTLD_NOW);
}

static const char *start(void)
{
    void *library = open_cupti();
    if (!library)
        return "CUPTI was not found: install it, or name its library in SONDE_CUPTI";
#define CUPTI_OPEN(symbol, name, parameters)                       \
    if (!(cupti.name = (int(*) parameters)dlsym(library, symbol))) \
        return "CUPTI lacks " symbol;
    CUPTI_FUNCTIONS(CUPTI_OPEN)
#undef CUPTI_OPEN
    static const uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_COPY, CUPTI_COPY_BETWEEN_GPUS, CUPTI_SET,
                                     CUPTI_WAIT};
    if (cupti.set_callbacks(buffer_wanted, buffer_full) != CUPTI_SUCCESS)
        return "CUPTI does not start";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (cupti.enable(kinds[i]) != CUPTI_SUCCESS && kinds[i] == CUPTI_KERNEL)
            return "CUPTI does not record kernels";
    process = getpid();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&flusher, NULL, flush_often, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        atexit(end_recording);
    return NULL;
}

int InitializeInjection(void)
{
    if (trace_is_off())
        return 1;
    lost = counter_define("cuda_lost", "", "records that found no buffer", NULL, 0);
    untimed = counter_define("cuda_untimed", "", "work whose times CUPTI did not report", NULL, 0);
    const char *reason = start();
    if (reason)
        sonde_annotate("--trace cuda records nothing", "reason", reason);
    return 1;
}
