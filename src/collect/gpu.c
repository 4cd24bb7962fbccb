// gpu.c - GPUs: a source for each vendor, and the threads that call its driver (gpu_backend.h).
//
// Any call into the driver may block: a GPU that falls off the bus can hold it for minutes. So the
// sampling thread makes no such call.
//
//   sampling thread               one thread a GPU
//   start all idle GPUs    ───▶   read the GPU and its parts into their `values`
//   wait, at most half a rate ◀── idle again
//   copy the values of idle GPUs
//
// A GPU that does not answer within the wait is late: its values are missing at this instant, and
// the sampling thread stops waiting for it; a later answer is used at the next instant, unless it
// is outdated by then (source_recent). When the GPU answers promptly again, the thread waits for it
// again. After HANG_NS without an answer the GPU is down (gpu_up 0, and a line in the log). A lost
// GPU is down for good, and not read any more. The other GPUs are not affected.
//
// The lock protects the states of requests and answers. A device's `values` belong to the GPU's
// thread during a reading, and to the sampling thread otherwise. The last user frees everything,
// because a thread may be stuck in the driver when the source is closed.
//
// Loading a library and starting the driver can take seconds, or hang. So another thread does it,
// and the agent waits for it at most START_WAIT_NS.
#include "base/arena.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "collect/gpu_backend.h"
#include "collect/gpu_holders.h"
#include "collect/procfile.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GPUS_MAX = 64,
    THREAD_STACK_BYTES = 1 << 20,
    OWN_LABELS_MAX = 5, // gpu, uuid, mig; for a process also pid, command
};
static const int64_t START_WAIT_NS = NS_PER_S;
static const int64_t CLOSE_WAIT_NS = NS_PER_S;
static const int64_t HANG_NS = NS_PER_S;
static const int64_t WAIT_MAX_NS = 2 * (int64_t)NS_PER_S;
static const int64_t WAIT_DEFAULT_NS = 250 * (int64_t)NS_PER_MS;

_Static_assert(GPUS_MAX * 2 < STORE_SET_SERIES_MAX, "there is room for gpu_up of all");

enum gpu_state { GPU_OPENING, GPU_IDLE, GPU_REQUESTED, GPU_GONE };

struct gpu {
    struct gpus *owner;
    unsigned index;
    pthread_cond_t requested;

    // Protected by the lock.
    enum gpu_state state;
    bool left;                // the GPU's thread is about to end
    bool fresh;               // the GPU has answered, and the answer is not used yet
    bool asked;               // the GPU was read, or is being read
    struct gpu_answer answer; // the answer to the last sample
    int64_t requested_ns, answered_ns;

    // Owned by the GPU's thread while it opens or reads the GPU; otherwise by the sampling thread.
    // The GPU itself comes first, then its parts.
    struct gpu_device *devices;
    size_t device_count;

    // Owned by the sampling thread.
    bool late; // the sampling thread does not wait for it
    bool up;
    int16_t up_place;
};

struct gpus {
    const struct gpu_vendor *vendor;
    char *root;
    pthread_mutex_t lock;
    pthread_cond_t changed; // signalled when a GPU has answered, was opened, or is gone
    unsigned users;         // number of users: the source and its threads
    bool stop;
    bool started;                      // the start has succeeded or failed
    char why[SOURCE_REASON_MAX];       // why the start failed; "" = it succeeded
    const struct gpu_backend *backend; // NULL before the start
    void *library;
    struct gpu *gpus;
    unsigned gpu_count;

    // Owned by the sampling thread.
    unsigned listed; // number of GPUs that were open when the series were made
    struct arena memory;
    int64_t wait_ns;
    int proc; // a descriptor of /proc; -1 = none
    struct job_mark job;
};

// ---- life ----

static void release(struct gpus *n)
{
    pthread_mutex_lock(&n->lock);
    bool last = --n->users == 0;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (!last)
        return;
    bool lost = false;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        lost = lost || n->gpus[i].answer.lost;
        free(n->gpus[i].devices);
        pthread_cond_destroy(&n->gpus[i].requested);
    }
    if (n->backend)
        n->backend->stop(n->library, lost);
    free(n->gpus);
    free(n->root);
    if (n->proc >= 0)
        close(n->proc);
    arena_free(&n->memory);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

// Starts a thread, detached because it may get stuck. The thread blocks signals, which other
// threads handle.
static int start_thread(struct gpus *n, void *(*run)(void *), void *user)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    pthread_mutex_lock(&n->lock);
    n->users++;
    pthread_mutex_unlock(&n->lock);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
        release(n);
    else
        pthread_setname_np(thread, "sonde-gpu");
    return failed;
}

// ---- the thread of one GPU ----

static struct gpu_answer sample_devices(const struct gpus *n, struct gpu *gpu)
{
    struct gpu_answer answer = {0};
    for (size_t i = 0; i < gpu->device_count; i++) {
        struct gpu_device *d = &gpu->devices[i];
        for (int row = 0; row < GPU_ROWS; row++)
            d->values[row] = store_missing();
        d->holder_count = 0;
        struct gpu_answer each = n->backend->sample(n->library, d);
        if (each.lost)
            return each;
        if (i == 0)
            answer = each;
    }
    return answer;
}

static struct gpu_answer open_gpu(const struct gpus *n, struct gpu *gpu)
{
    gpu->devices = calloc(1 + GPU_PARTS_MAX, sizeof *gpu->devices);
    if (!gpu->devices)
        return (struct gpu_answer){.words = "no memory"};
    struct gpu_answer answer =
        n->backend->open(n->library, gpu->index, gpu->devices, &gpu->device_count);
    if (!answer.words)
        answer = sample_devices(n, gpu);
    for (size_t i = 0; i < gpu->device_count; i++)
        for (int row = 0; row < GPU_ROWS; row++)
            gpu->devices[i].listed[row] = !gpu->devices[i].off[row];
    return answer;
}

static void *run_gpu(void *user)
{
    struct gpu *gpu = user;
    struct gpus *n = gpu->owner;
    struct gpu_answer answer = open_gpu(n, gpu);
    bool opened = gpu->device_count > 0;
    pthread_mutex_lock(&n->lock);
    gpu->answered_ns = clock_monotonic_ns();
    while (true) {
        gpu->answer = answer;
        gpu->state = opened && !answer.lost ? GPU_IDLE : GPU_GONE;
        pthread_cond_broadcast(&n->changed);
        while (gpu->state == GPU_IDLE && !n->stop)
            pthread_cond_wait(&gpu->requested, &n->lock);
        if (gpu->state != GPU_REQUESTED)
            break;
        pthread_mutex_unlock(&n->lock);
        answer = sample_devices(n, gpu);
        pthread_mutex_lock(&n->lock);
        gpu->fresh = true;
        gpu->answered_ns = clock_monotonic_ns();
    }
    pthread_mutex_unlock(&n->lock);
    for (size_t i = 0; i < gpu->device_count; i++)
        n->backend->close(n->library, &gpu->devices[i]);
    pthread_mutex_lock(&n->lock);
    gpu->state = GPU_GONE;
    gpu->left = true;
    pthread_mutex_unlock(&n->lock);
    release(n);
    return NULL;
}

// ---- start ----

static void *run_start(void *user)
{
    struct gpus *n = user;
    void *library;
    char why[GPU_WHY_MAX];
    unsigned count;
    const struct gpu_backend *backend = gpu_find_backend(n->vendor, n->root, &library, &count, why);
    if (count > GPUS_MAX) {
        log_warning("of %u %s GPUs only the first %d are sampled", count, n->vendor->name,
                    GPUS_MAX);
        count = GPUS_MAX;
    }
    struct gpu *gpus = count ? calloc(count, sizeof *gpus) : NULL;
    for (unsigned i = 0; gpus && i < count; i++) {
        gpus[i] = (struct gpu){.owner = n,
                               .index = i,
                               .up_place = -1,
                               .up = true,
                               .requested_ns = clock_monotonic_ns()};
        pthread_cond_init(&gpus[i].requested, NULL);
    }
    pthread_mutex_lock(&n->lock);
    n->backend = backend;
    n->library = library;
    n->gpus = gpus;
    n->gpu_count = gpus ? count : 0;
    bool stop = n->stop;
    pthread_mutex_unlock(&n->lock);
    for (unsigned i = 0; i < n->gpu_count && !stop; i++)
        if (start_thread(n, run_gpu, &gpus[i]) != 0) {
            pthread_mutex_lock(&n->lock);
            gpus[i].state = GPU_GONE;
            gpus[i].answer.words = "cannot start a thread for it";
            pthread_mutex_unlock(&n->lock);
        }
    pthread_mutex_lock(&n->lock);
    snprintf(n->why, sizeof n->why, "%s", count && !gpus ? "no memory" : why);
    n->started = true;
    pthread_mutex_unlock(&n->lock);
    release(n);
    return NULL;
}

static unsigned count_open(const struct gpus *n)
{
    unsigned count = 0;
    for (unsigned i = 0; n->started && i < n->gpu_count; i++)
        count += n->gpus[i].state != GPU_OPENING;
    return count;
}

// ---- series ----

// Under the lock. Adds one series to the set, with the labels of its GPU; returns its place or -1.
static int16_t add_series(struct source *s, enum metric_symbol row,
                          const struct store_label *labels, size_t count)
{
    if (s->place[row - s->first_row] < 0 || s->count == STORE_SET_SERIES_MAX)
        return -1;
    s->series[s->count] = (struct collect_series){&catalogue_metrics[row], labels, count};
    return (int16_t)s->count++;
}

static const struct store_label *make_labels(struct source *s, struct arena *memory,
                                             const struct store_label *own, size_t own_count,
                                             size_t *count)
{
    size_t given = s->options->label_count;
    struct store_label *labels = arena_array(memory, given + own_count, sizeof *labels);
    if (!labels)
        return NULL;
    for (size_t i = 0; i < given; i++)
        labels[i] = s->options->labels[i];
    *count = given;
    for (size_t i = 0; i < own_count; i++) {
        if (own[i].value.size == 0)
            continue;
        labels[*count] = (struct store_label){own[i].key, arena_str(memory, own[i].value)};
        if (!labels[(*count)++].value.data)
            return NULL;
    }
    return labels;
}

// Adds one series for each process of the job that holds memory of the device. `own`: the device's
// labels.
static bool add_holders(struct source *s, struct gpus *n, struct gpu_device *d,
                        struct store_label own[OWN_LABELS_MAX])
{
    for (size_t i = 0; i < d->known_count; i++) {
        struct gpu_holder *holder = &d->known[i];
        char pid[24];
        size_t count;
        holder->place = -1;
        if (!holder->of_job)
            continue;
        snprintf(pid, sizeof pid, "%" PRIu64, holder->pid);
        own[OWN_LABELS_MAX - 2] = (struct store_label){STR("pid"), str_of(pid)};
        own[OWN_LABELS_MAX - 1] = (struct store_label){STR("command"), str_of(holder->command)};
        const struct store_label *labels = make_labels(s, &n->memory, own, OWN_LABELS_MAX, &count);
        if (!labels)
            return false;
        holder->place = add_series(s, METRIC_PROCESS_GPU_MEMORY, labels, count);
    }
    return true;
}

static bool add_device(struct source *s, struct gpus *n, struct gpu *gpu, struct gpu_device *d)
{
    char index[12];
    snprintf(index, sizeof index, "%u", gpu->index);
    struct store_label own[OWN_LABELS_MAX] = {{STR("gpu"), str_of(index)},
                                              {STR("uuid"), str_of(d ? d->uuid : "")},
                                              {STR("mig"), str_of(d ? d->part : "")}};
    size_t count;
    const struct store_label *labels = make_labels(s, &n->memory, own, OWN_LABELS_MAX, &count);
    if (!labels)
        return false;
    if (!d || !d->part[0])
        gpu->up_place = add_series(s, METRIC_GPU_UP, labels, count);
    for (int row = 0; d && row < GPU_ROWS; row++) {
        enum metric_symbol symbol = (enum metric_symbol)(GPU_ROW_FIRST + row);
        d->place[row] = d->listed[row] && symbol != METRIC_GPU_UP
                            ? add_series(s, symbol, labels, count)
                            : (int16_t)-1;
    }
    return !d || add_holders(s, n, d, own);
}

// Under the lock. Makes the series of the open GPUs; a GPU that is still opening, or failed to
// open, has only gpu_up. gpu_count comes first.
static int make_series(struct source *s, struct gpus *n)
{
    const struct store_label own[] = {{STR("vendor"), str_of(n->vendor->tag)},
                                      {STR("library"), str_of(n->backend ? n->backend->name : "")}};
    size_t most = 1;
    for (unsigned i = 0; i < n->gpu_count; i++)
        most += 1 + (n->gpus[i].state == GPU_OPENING
                         ? 0
                         : n->gpus[i].device_count * (GPU_ROWS + GPU_HOLDERS_MAX));
    struct collect_series *series = malloc(most * sizeof *series);
    if (!series)
        return source_fail(s, -ENOMEM, "no memory");
    struct arena older = n->memory;
    n->memory = (struct arena){0};
    free(s->series);
    s->series = series;
    s->count = 0;
    s->generation++;
    size_t count;
    const struct store_label *labels = make_labels(s, &n->memory, own, 2, &count);
    bool whole = labels && add_series(s, METRIC_GPU_COUNT, labels, count) == 0;
    n->listed = 0;
    for (unsigned i = 0; whole && n->started && i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        bool open = gpu->state != GPU_OPENING;
        n->listed += open;
        size_t devices = open && !gpu->answer.lost ? gpu->device_count : 0;
        whole = devices || add_device(s, n, gpu, NULL);
        for (size_t d = 0; whole && d < devices; d++)
            whole = add_device(s, n, gpu, &gpu->devices[d]);
    }
    arena_free(&older);
    if (s->count == STORE_SET_SERIES_MAX)
        log_warning("the %s GPUs of this node have more than %d metrics: the rest is left out",
                    n->vendor->name, STORE_SET_SERIES_MAX);
    return whole ? 0 : source_fail(s, -ENOMEM, "no memory");
}

// ---- the source ----

// Under the lock. Counts the threads that hang and are left behind.
static unsigned count_stuck(const struct gpus *n)
{
    unsigned count = !n->started;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        const struct gpu *gpu = &n->gpus[i];
        count += gpu->state == GPU_OPENING || (gpu->state == GPU_REQUESTED && gpu->late) ||
                 (gpu->answer.lost && !gpu->left);
    }
    return count;
}

static void gpus_close(struct source *s)
{
    struct gpus *n = s->state;
    int64_t until_ns = clock_monotonic_ns() + CLOSE_WAIT_NS;
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    for (unsigned i = 0; i < n->gpu_count; i++)
        pthread_cond_signal(&n->gpus[i].requested);
    // The other threads may still be within a call of the driver.
    while (n->users > 1 + count_stuck(n) && condition_wait_until(&n->changed, &n->lock, until_ns))
        ;
    pthread_mutex_unlock(&n->lock);
    release(n);
}

static int gpus_open(struct source *s, const struct gpu_vendor *vendor)
{
    struct gpus *n = calloc(1, sizeof *n);
    if (n)
        n->root = strdup(s->options->root ? s->options->root : "");
    if (!n || !n->root) {
        free(n);
        return source_fail(s, -ENOMEM, "no memory");
    }
    n->vendor = vendor;
    n->proc = procfile_folder(s, "/proc");
    job_mark_set(&n->job, s->options->job);
    pthread_mutex_init(&n->lock, NULL);
    condition_init(&n->changed);
    n->users = 1;
    n->wait_ns = WAIT_DEFAULT_NS;
    if (s->options->rate_s > 0) {
        double half_ns = s->options->rate_s * NS_PER_S / 2;
        n->wait_ns = half_ns < (double)WAIT_MAX_NS ? (int64_t)half_ns : WAIT_MAX_NS;
    }
    s->state = n;
    int failed = start_thread(n, run_start, n);
    if (failed) {
        release(n);
        return source_fail(s, -failed, "cannot start a thread: %s", strerror(failed));
    }
    int64_t until_ns = clock_monotonic_ns() + START_WAIT_NS;
    pthread_mutex_lock(&n->lock);
    while ((!n->started || count_open(n) < n->gpu_count) &&
           condition_wait_until(&n->changed, &n->lock, until_ns))
        ;
    failed = n->started && n->why[0] ? source_fail(s, -ENODEV, "%s", n->why) : make_series(s, n);
    pthread_mutex_unlock(&n->lock);
    if (failed)
        gpus_close(s);
    return failed;
}

// Under the lock. Copies the last values of an idle GPU to their places.
static void take_values(struct source *s, const struct gpus *n, struct gpu *gpu, double *values)
{
    gpu->fresh = false;
    for (size_t i = 0; i < gpu->device_count; i++) {
        struct gpu_device *d = &gpu->devices[i];
        for (int row = 0; row < GPU_ROWS; row++)
            if (d->place[row] >= 0)
                values[d->place[row]] = d->values[row];
        if (s->place[METRIC_PROCESS_GPU_MEMORY - s->first_row] >= 0)
            gpu_holders_take(s, n->proc, &n->job, d, values);
    }
}

// Under the lock. Starts reading the idle GPUs, and waits for those that were prompt so far. If
// only late answers are wanted, it reads only GPUs that came up after the last sample.
static void ask(struct source *s, struct gpus *n, double *values)
{
    int64_t now_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        if (gpu->state != GPU_IDLE)
            continue;
        if (gpu->fresh && source_recent(now_ns - gpu->requested_ns))
            take_values(s, n, gpu, values);
        if (s->late_only && gpu->asked)
            continue;
        gpu->asked = true;
        gpu->state = GPU_REQUESTED;
        gpu->requested_ns = now_ns;
        pthread_cond_signal(&gpu->requested);
    }
    bool waiting = true;
    while (waiting) {
        waiting = false;
        for (unsigned i = 0; i < n->gpu_count; i++)
            waiting = waiting || (n->gpus[i].state == GPU_REQUESTED && !n->gpus[i].late);
        waiting = waiting && condition_wait_until(&n->changed, &n->lock, now_ns + n->wait_ns);
    }
}

static void report(const char *vendor, struct gpu *gpu, bool up, int64_t silent_ns)
{
    if (up == gpu->up)
        return;
    gpu->up = up;
    if (up)
        log_info("%s GPU %u answers", vendor, gpu->index);
    else if (gpu->state == GPU_GONE || gpu->state == GPU_IDLE)
        log_warning("%s GPU %u: %s; the others go on", vendor, gpu->index, gpu->answer.words);
    else
        log_warning("%s GPU %u has not answered for %.1f s; the others go on", vendor, gpu->index,
                    (double)silent_ns / NS_PER_S);
}

// Under the lock. Takes the answers, and sets the reason of the first GPU with a problem.
static void gather(struct source *s, struct gpus *n, double *values)
{
    int64_t now_ns = clock_monotonic_ns();
    unsigned up_count = 0;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        bool up = gpu->state == GPU_REQUESTED || (gpu->state == GPU_IDLE && !gpu->answer.down);
        int64_t silent_ns = gpu->state == GPU_REQUESTED || gpu->state == GPU_OPENING
                                ? now_ns - gpu->requested_ns
                                : 0;
        if (gpu->state == GPU_IDLE) {
            if (gpu->fresh || !s->late_only)
                take_values(s, n, gpu, values);
            gpu->late = gpu->answered_ns - gpu->requested_ns > n->wait_ns;
        } else if (gpu->state == GPU_REQUESTED) {
            gpu->late = true;
        }
        s->owes = s->owes || (silent_ns && source_recent(silent_ns));
        report(n->vendor->name, gpu, up && silent_ns < HANG_NS, silent_ns);
        up_count += gpu->up;
        if (gpu->up_place >= 0)
            values[gpu->up_place] = gpu->up;
        if (s->reason[0])
            continue;
        if (gpu->state == GPU_GONE || (gpu->state == GPU_IDLE && gpu->answer.words))
            source_fail(s, 0, "GPU %u: %s", gpu->index, gpu->answer.words);
        else if (silent_ns >= n->wait_ns)
            source_fail(s, 0, "GPU %u has not answered for %.1f s", gpu->index,
                        (double)silent_ns / NS_PER_S);
    }
    values[0] = up_count;
}

static int gpus_sample(struct source *s, double *values)
{
    struct gpus *n = s->state;
    int result = 0;
    pthread_mutex_lock(&n->lock);
    bool complete = n->started && count_open(n) == n->listed;
    if (!n->started) {
        result = source_fail(s, -EAGAIN, "the %s driver is still starting", n->vendor->name);
    } else if (n->why[0]) {
        result = source_fail(s, -ENODEV, "%s", n->why);
    } else if (!complete) {
        // The values of this instant belong to the old set; the new series begin at the next
        // instant.
        result = make_series(s, n);
        result =
            result ? result : source_fail(s, -EAGAIN, "more %s GPUs have come up", n->vendor->name);
    } else {
        ask(s, n, values);
        gather(s, n, values);
        complete = count_open(n) == n->listed; // another may have come up meanwhile
    }
    s->owes = s->owes || !complete;
    pthread_mutex_unlock(&n->lock);
    return result;
}

static int gpus_remake(struct source *s)
{
    struct gpus *n = s->state;
    pthread_mutex_lock(&n->lock);
    s->changed = false;
    int failed = make_series(s, n);
    pthread_mutex_unlock(&n->lock);
    return failed;
}

// ---- the vendors ----

static int open_nvidia(struct source *s)
{
    return gpus_open(s, &gpu_vendors[GPU_NVIDIA]);
}

static int open_amd(struct source *s)
{
    return gpus_open(s, &gpu_vendors[GPU_AMD]);
}

static int open_intel(struct source *s)
{
    return gpus_open(s, &gpu_vendors[GPU_INTEL]);
}

#define GPUS(label, opener)                                                       \
    {                                                                             \
        .name = {label, sizeof label - 1}, .open = opener, .sample = gpus_sample, \
        .close = gpus_close, .remake = gpus_remake, .own_series = true,           \
    }

const struct source_kind source_nvidia = GPUS("gpu-nvidia", open_nvidia);
const struct source_kind source_amd = GPUS("gpu-amd", open_amd);
const struct source_kind source_intel = GPUS("gpu-intel", open_intel);
