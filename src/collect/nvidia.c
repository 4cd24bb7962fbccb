// nvidia.c - NVIDIA GPUs: the source, and the threads that ask the driver.
//
// Any call into the driver may block: a GPU that falls off the bus can hold it for minutes. So nothing is asked in the sampling thread.
//
//   sampling thread               one thread a GPU
//   ask all that are idle  ───▶   read the GPU and its MIG instances into their `values`
//   wait, at most half a rate ◀── idle again
//   copy the values of the idle
//
// A GPU that does not answer within the wait is late: its values are missing at this instant, and from now on it is not waited for; what it
// says later is taken at the next instant. When it answers promptly again it is waited for again. After HANG_NS without an answer it is down
// (gpu_up 0, and a line in the log). A GPU that is lost is down for good, and no longer asked. The others notice nothing.
//
// State under the lock: what is asked and answered. A device's `values` belong to the GPU's thread while it is asked and to the sampling
// thread otherwise. Whoever lets go last (a thread may be stuck in the driver when the source is closed) frees everything.
//
// Starting the driver can take seconds, or hang: that has a thread too, and START_WAIT_NS to be done before the agent goes on without it.
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "collect/nvidia_device.h"
#include "collect/source.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NVIDIA_GPUS_MAX = 64,
    NVIDIA_MIG_MAX = 16, // instances a GPU; the driver's own limit is 7 today
    THREAD_STACK_BYTES = 1 << 20,
    OWN_LABELS_MAX = 3, // gpu, uuid, mig
};
static const int64_t START_WAIT_NS = NS_PER_S;
static const int64_t CLOSE_WAIT_NS = NS_PER_S;
static const int64_t HANG_NS = NS_PER_S;
static const int64_t WAIT_MAX_NS = 2 * (int64_t)NS_PER_S;
static const int64_t WAIT_DEFAULT_NS = 250 * (int64_t)NS_PER_MS;

_Static_assert(NVIDIA_GPUS_MAX * 2 < STORE_SET_SERIES_MAX, "there is room for gpu_up of all");

enum gpu_state { GPU_OPENING, GPU_IDLE, GPU_ASKED, GPU_GONE };

struct gpu {
    struct nvidia *owner;
    unsigned index;
    pthread_cond_t asked;

    // Under the lock.
    enum gpu_state state;
    bool lost;
    bool left;  // its thread is about to end
    bool fresh; // answered, and not yet taken
    int result; // of the last sample
    int64_t asked_ns, answered_ns;

    // Of the GPU's thread while it is opening or asked; else the sampling thread's. The GPU itself comes first, then its MIG instances.
    struct nvidia_device *devices;
    size_t device_count;

    // The sampling thread's.
    bool late; // not waited for
    bool up;
    int16_t up_place;
};

struct nvidia {
    struct nvml nvml;
    pthread_mutex_t lock;
    pthread_cond_t changed; // something was answered, opened or has gone
    unsigned users;         // the source and the threads
    bool stop;
    bool started; // or failed to
    bool initialised;
    int failed;      // of the start, as NVML says it
    const char *why; // of the start
    struct gpu *gpus;
    unsigned gpu_count;

    // The sampling thread's.
    unsigned listed; // GPUs that were open when the series were made
    struct arena memory;
    int64_t wait_ns;
};

// ---- life ----

static void let_go(struct nvidia *n)
{
    pthread_mutex_lock(&n->lock);
    bool last = --n->users == 0;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (!last)
        return;
    bool lost = false;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        lost = lost || n->gpus[i].lost;
        free(n->gpus[i].devices);
        pthread_cond_destroy(&n->gpus[i].asked);
    }
    // With a lost GPU the driver may never come back from it.
    if (n->initialised && !lost && n->nvml.shutdown)
        n->nvml.shutdown();
    if (!lost)
        nvml_close(&n->nvml);
    free(n->gpus);
    arena_free(&n->memory);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

// Threads that nobody joins: they may be stuck. Signals are for others.
static int start_thread(struct nvidia *n, void *(*run)(void *), void *user)
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
        let_go(n);
    else
        pthread_setname_np(thread, "sonde-nvidia");
    return failed;
}

// ---- the thread of one GPU ----

static int open_mig(const struct nvml *nvml, struct gpu *gpu, nvml_device handle)
{
    unsigned current = 0, pending, most = 0;
    if (!nvml->mig_mode || !nvml->mig_count_max || !nvml->mig_handle)
        return NVML_SUCCESS;
    if (nvml->mig_mode(handle, &current, &pending) != NVML_SUCCESS || !current)
        return NVML_SUCCESS;
    if (nvml->mig_count_max(handle, &most) != NVML_SUCCESS)
        return NVML_SUCCESS;
    for (unsigned i = 0; i < most && gpu->device_count <= NVIDIA_MIG_MAX; i++) {
        nvml_device instance;
        int result = nvml->mig_handle(handle, i, &instance);
        if (result == NVML_GPU_IS_LOST)
            return result;
        if (result != NVML_SUCCESS)
            continue;
        struct nvidia_device *d = &gpu->devices[gpu->device_count];
        result = nvidia_device_open(nvml, d, instance, handle);
        if (result == NVML_GPU_IS_LOST)
            return result;
        snprintf(d->mig, sizeof d->mig, "%u", i);
        gpu->device_count++;
    }
    return NVML_SUCCESS;
}

static int sample_devices(const struct nvml *nvml, struct gpu *gpu)
{
    int result = NVML_NOT_SUPPORTED;
    for (size_t i = 0; i < gpu->device_count; i++) {
        int each = nvidia_device_sample(nvml, &gpu->devices[i]);
        if (each == NVML_GPU_IS_LOST)
            return each;
        if (i == 0)
            result = each;
    }
    return result;
}

static int open_gpu(const struct nvml *nvml, struct gpu *gpu)
{
    nvml_device handle;
    int result = nvml->device_handle(gpu->index, &handle);
    if (result != NVML_SUCCESS)
        return result;
    gpu->devices = calloc(1 + NVIDIA_MIG_MAX, sizeof *gpu->devices);
    if (!gpu->devices)
        return NVML_UNKNOWN;
    result = nvidia_device_open(nvml, &gpu->devices[0], handle, NULL);
    if (result != NVML_SUCCESS)
        return result;
    gpu->device_count = 1;
    result = open_mig(nvml, gpu, handle);
    if (result == NVML_SUCCESS)
        result = sample_devices(nvml, gpu);
    if (result == NVML_GPU_IS_LOST)
        return result;
    for (size_t i = 0; i < gpu->device_count; i++)
        for (int row = 0; row < GPU_ROWS; row++)
            gpu->devices[i].listed[row] = !gpu->devices[i].off[row];
    return result;
}

static void *run_gpu(void *user)
{
    struct gpu *gpu = user;
    struct nvidia *n = gpu->owner;
    int result = open_gpu(&n->nvml, gpu);
    bool opened = gpu->device_count > 0;
    pthread_mutex_lock(&n->lock);
    gpu->answered_ns = clock_monotonic_ns();
    while (true) {
        gpu->result = result;
        gpu->lost = result == NVML_GPU_IS_LOST;
        gpu->state = opened && !gpu->lost ? GPU_IDLE : GPU_GONE;
        pthread_cond_broadcast(&n->changed);
        while (gpu->state == GPU_IDLE && !n->stop)
            pthread_cond_wait(&gpu->asked, &n->lock);
        if (gpu->state != GPU_ASKED)
            break;
        pthread_mutex_unlock(&n->lock);
        result = sample_devices(&n->nvml, gpu);
        pthread_mutex_lock(&n->lock);
        gpu->fresh = true;
        gpu->answered_ns = clock_monotonic_ns();
    }
    pthread_mutex_unlock(&n->lock);
    for (size_t i = 0; i < gpu->device_count; i++)
        nvidia_device_close(&n->nvml, &gpu->devices[i]);
    pthread_mutex_lock(&n->lock);
    gpu->state = GPU_GONE;
    gpu->left = true;
    pthread_mutex_unlock(&n->lock);
    let_go(n);
    return NULL;
}

// ---- start ----

static void *run_start(void *user)
{
    struct nvidia *n = user;
    unsigned count = 0;
    const char *why = "cannot start the NVIDIA driver";
    int failed = n->nvml.init();
    bool initialised = failed == NVML_SUCCESS;
    if (initialised) {
        why = "cannot count the NVIDIA GPUs";
        failed = n->nvml.device_count(&count);
    }
    if (count > NVIDIA_GPUS_MAX) {
        log_warning("of %u NVIDIA GPUs only the first %d are sampled", count, NVIDIA_GPUS_MAX);
        count = NVIDIA_GPUS_MAX;
    }
    struct gpu *gpus = count && !failed ? calloc(count, sizeof *gpus) : NULL;
    for (unsigned i = 0; gpus && i < count; i++) {
        gpus[i] = (struct gpu){.owner = n, .index = i, .up_place = -1, .up = true, .asked_ns = clock_monotonic_ns()};
        pthread_cond_init(&gpus[i].asked, NULL);
    }
    pthread_mutex_lock(&n->lock);
    n->initialised = initialised;
    n->gpus = gpus;
    n->gpu_count = gpus ? count : 0;
    bool stop = n->stop;
    pthread_mutex_unlock(&n->lock);
    for (unsigned i = 0; i < n->gpu_count && !stop; i++)
        if (start_thread(n, run_gpu, &gpus[i]) != 0) {
            pthread_mutex_lock(&n->lock);
            gpus[i].state = GPU_GONE;
            gpus[i].result = NVML_UNKNOWN;
            pthread_mutex_unlock(&n->lock);
        }
    pthread_mutex_lock(&n->lock);
    n->failed = failed;
    n->why = failed ? why : !count ? "there is no NVIDIA GPU on this node" : !gpus ? "no memory" : NULL;
    n->started = true;
    pthread_mutex_unlock(&n->lock);
    let_go(n);
    return NULL;
}

static unsigned count_open(const struct nvidia *n)
{
    unsigned count = 0;
    for (unsigned i = 0; n->started && i < n->gpu_count; i++)
        count += n->gpus[i].state != GPU_OPENING;
    return count;
}

static bool wait_until(struct nvidia *n, int64_t until_ns)
{
    struct timespec at = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    return pthread_cond_timedwait(&n->changed, &n->lock, &at) == 0;
}

static int fail_start(struct source *s, const struct nvidia *n)
{
    if (n->failed)
        return source_fail(s, -ENODEV, "%s: %s", n->why, nvml_words(n->failed));
    return source_fail(s, -ENODEV, "%s", n->why);
}

// ---- series ----

// Under the lock. One series of the set, with the labels of its GPU; its place or -1.
static int16_t add_series(struct source *s, enum metric_symbol row, const struct store_label *labels, size_t count)
{
    if (s->place[row - s->first_row] < 0 || s->count == STORE_SET_SERIES_MAX)
        return -1;
    s->series[s->count] = (struct collect_series){&catalogue_metrics[row], labels, count};
    return (int16_t)s->count++;
}

static const struct store_label *make_labels(struct source *s, struct arena *memory, const struct store_label *own,
                                             size_t own_count, size_t *count)
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

static bool add_device(struct source *s, struct nvidia *n, struct gpu *gpu, struct nvidia_device *d)
{
    char index[12];
    snprintf(index, sizeof index, "%u", gpu->index);
    const struct store_label own[OWN_LABELS_MAX] = {
        {STR("gpu"), str_of(index)}, {STR("uuid"), str_of(d ? d->uuid : "")}, {STR("mig"), str_of(d ? d->mig : "")}};
    size_t count;
    const struct store_label *labels = make_labels(s, &n->memory, own, OWN_LABELS_MAX, &count);
    if (!labels)
        return false;
    if (!d || !d->parent)
        gpu->up_place = add_series(s, METRIC_GPU_UP, labels, count);
    for (int row = 0; d && row < GPU_ROWS; row++) {
        enum metric_symbol symbol = (enum metric_symbol)(GPU_ROW_FIRST + row);
        d->place[row] = d->listed[row] && symbol != METRIC_GPU_UP ? add_series(s, symbol, labels, count) : (int16_t)-1;
    }
    return true;
}

// Under the lock. Series for what is open now; a GPU that is still opening, or never opened, has gpu_up only. gpu_count stands first.
static int make_series(struct source *s, struct nvidia *n)
{
    static const struct store_label vendor = {{"vendor", 6}, {"nvidia", 6}};
    size_t most = 1;
    for (unsigned i = 0; i < n->gpu_count; i++)
        most += 1 + (n->gpus[i].state == GPU_OPENING ? 0 : n->gpus[i].device_count * GPU_ROWS);
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
    const struct store_label *labels = make_labels(s, &n->memory, &vendor, 1, &count);
    bool whole = labels && add_series(s, METRIC_GPU_COUNT, labels, count) == 0;
    n->listed = 0;
    for (unsigned i = 0; whole && n->started && i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        bool open = gpu->state != GPU_OPENING;
        n->listed += open;
        size_t devices = open && !gpu->lost ? gpu->device_count : 0;
        whole = devices || add_device(s, n, gpu, NULL);
        for (size_t d = 0; whole && d < devices; d++)
            whole = add_device(s, n, gpu, &gpu->devices[d]);
    }
    arena_free(&older);
    if (s->count == STORE_SET_SERIES_MAX)
        log_warning("the NVIDIA GPUs of this node have more than %d metrics: the rest is left out",
                    STORE_SET_SERIES_MAX);
    return whole ? 0 : source_fail(s, -ENOMEM, "no memory");
}

// ---- the source ----

// Under the lock. Threads that hang already, and are left behind.
static unsigned count_stuck(const struct nvidia *n)
{
    unsigned count = !n->started;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        const struct gpu *gpu = &n->gpus[i];
        count += gpu->state == GPU_OPENING || (gpu->state == GPU_ASKED && gpu->late) || (gpu->lost && !gpu->left);
    }
    return count;
}

static void nvidia_close(struct source *s)
{
    struct nvidia *n = s->state;
    int64_t until_ns = clock_monotonic_ns() + CLOSE_WAIT_NS;
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    for (unsigned i = 0; i < n->gpu_count; i++)
        pthread_cond_signal(&n->gpus[i].asked);
    // The others are in the middle of a call at most.
    while (n->users > 1 + count_stuck(n) && wait_until(n, until_ns))
        ;
    pthread_mutex_unlock(&n->lock);
    let_go(n);
}

static int nvidia_open(struct source *s)
{
    const char *name = getenv("SONDE_NVML");
    if (!name && s->options->root && s->options->root[0])
        return source_fail(s, -ENOENT, "there is no NVML in another root folder");
    struct nvidia *n = calloc(1, sizeof *n);
    if (!n)
        return source_fail(s, -ENOMEM, "no memory");
    const char *wrong = nvml_open(&n->nvml, name ? name : "libnvidia-ml.so.1");
    if (wrong) {
        free(n);
        return source_fail(s, -ENOENT, "no NVIDIA library: %s", wrong);
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    n->users = 1;
    n->wait_ns = WAIT_DEFAULT_NS;
    if (s->options->rate_s > 0) {
        double half_ns = s->options->rate_s * NS_PER_S / 2;
        n->wait_ns = half_ns < (double)WAIT_MAX_NS ? (int64_t)half_ns : WAIT_MAX_NS;
    }
    s->state = n;
    int failed = start_thread(n, run_start, n);
    if (failed) {
        let_go(n);
        return source_fail(s, -failed, "cannot start a thread: %s", strerror(failed));
    }
    int64_t until_ns = clock_monotonic_ns() + START_WAIT_NS;
    pthread_mutex_lock(&n->lock);
    while ((!n->started || count_open(n) < n->gpu_count) && wait_until(n, until_ns))
        ;
    failed = n->started && n->why ? fail_start(s, n) : make_series(s, n);
    pthread_mutex_unlock(&n->lock);
    if (failed)
        nvidia_close(s);
    return failed;
}

// Under the lock. What the idle GPU said last goes to its places.
static void take_values(struct gpu *gpu, double *values)
{
    gpu->fresh = false;
    for (size_t i = 0; i < gpu->device_count; i++) {
        const struct nvidia_device *d = &gpu->devices[i];
        for (int row = 0; row < GPU_ROWS; row++)
            if (d->place[row] >= 0)
                values[d->place[row]] = d->values[row];
    }
}

// Under the lock. Asks the idle ones, and waits for those that were prompt so far.
static void ask(struct nvidia *n, double *values)
{
    int64_t now_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        if (gpu->state != GPU_IDLE)
            continue;
        if (gpu->fresh)
            take_values(gpu, values);
        gpu->state = GPU_ASKED;
        gpu->asked_ns = now_ns;
        pthread_cond_signal(&gpu->asked);
    }
    bool waiting = true;
    while (waiting) {
        waiting = false;
        for (unsigned i = 0; i < n->gpu_count; i++)
            waiting = waiting || (n->gpus[i].state == GPU_ASKED && !n->gpus[i].late);
        waiting = waiting && wait_until(n, now_ns + n->wait_ns);
    }
}

static void report(struct gpu *gpu, bool up, int64_t silent_ns)
{
    if (up == gpu->up)
        return;
    gpu->up = up;
    if (up)
        log_info("NVIDIA GPU %u answers", gpu->index);
    else if (gpu->state == GPU_GONE)
        log_warning("NVIDIA GPU %u: %s; the others go on", gpu->index, nvml_words(gpu->result));
    else
        log_warning("NVIDIA GPU %u has not answered for %.1f s; the others go on", gpu->index,
                    (double)silent_ns / NS_PER_S);
}

// Under the lock. Takes what has been answered, and says what is wrong: with the first GPU that has something.
static void gather(struct source *s, struct nvidia *n, double *values)
{
    int64_t now_ns = clock_monotonic_ns();
    unsigned up_count = 0;
    for (unsigned i = 0; i < n->gpu_count; i++) {
        struct gpu *gpu = &n->gpus[i];
        int64_t silent_ns = gpu->state == GPU_ASKED || gpu->state == GPU_OPENING ? now_ns - gpu->asked_ns : 0;
        if (gpu->state == GPU_IDLE) {
            take_values(gpu, values);
            gpu->late = gpu->answered_ns - gpu->asked_ns > n->wait_ns;
        } else if (gpu->state == GPU_ASKED) {
            gpu->late = true;
        }
        report(gpu, gpu->state != GPU_GONE && gpu->state != GPU_OPENING && silent_ns < HANG_NS, silent_ns);
        up_count += gpu->up;
        if (gpu->up_place >= 0)
            values[gpu->up_place] = gpu->up;
        if (s->reason[0])
            continue;
        if (gpu->state == GPU_GONE || (gpu->state == GPU_IDLE && gpu->result != NVML_SUCCESS))
            source_fail(s, 0, "GPU %u: %s", gpu->index, nvml_words(gpu->result));
        else if (silent_ns >= n->wait_ns)
            source_fail(s, 0, "GPU %u has not answered for %.1f s", gpu->index, (double)silent_ns / NS_PER_S);
    }
    values[0] = up_count;
}

static int nvidia_sample(struct source *s, double *values)
{
    struct nvidia *n = s->state;
    int result = 0;
    pthread_mutex_lock(&n->lock);
    if (!n->started) {
        result = source_fail(s, -EAGAIN, "the NVIDIA driver is still starting");
    } else if (n->why) {
        result = fail_start(s, n);
    } else if (count_open(n) != n->listed) {
        // The set that this instant's values belong to is the older one: they begin with the next instant.
        result = make_series(s, n);
        result = result ? result : source_fail(s, -EAGAIN, "more NVIDIA GPUs have come up");
    } else {
        ask(n, values);
        gather(s, n, values);
    }
    pthread_mutex_unlock(&n->lock);
    return result;
}

const struct source_kind source_nvidia = {
    .name = {"gpu-nvidia", 10},
    .open = nvidia_open,
    .sample = nvidia_sample,
    .close = nvidia_close,
    .own_series = true,
};
