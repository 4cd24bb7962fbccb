// process.c - starts sonde in a process, gives rings to threads, and starts it again in forked
// children.
//
// The fork() handlers hold the lock during a fork, so that the child inherits a consistent state.
// In the child they close the copies of our descriptors, forget the ring and change `mark`. They do
// nothing more, because most children only exec. When the child first emits, it sees that `mark`
// has changed. It then makes a new segment with the same definitions, at the address of the
// parent's segment, so all pointers and handles stay valid. A child of a bare clone(), or of a
// fork() that began before the handlers were registered, runs no handlers. But `mark` is in a page
// that the kernel clears in children (MADV_WIPEONFORK). The next slow path notices that, at most a
// quarter of a ring later, and mend_after_fork() does the work of the handlers.
#include "emit/process.h"
#include "base/clock.h"
#include "base/process_start.h"

#include "sonde.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct emit_process emit_process = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                    .segment = {.file = {.fd = -1}, .agent_file = {.fd = -1}},
                                    .socket = {.fd = -1}};
struct ring emit_no_ring;
__thread struct ring *emit_self = &emit_no_ring;

static pthread_key_t thread_ends;

// Changes the blocked signals without pthread_sigmask(), which never blocks the signal with which
// glibc cancels threads. The handler of this signal does not always check whether the thread is
// cancellable (glibc 2.36), so disabling cancellation is not enough. Signals of faults stay
// unblocked, because the kernel ends a process that has blocked them.
static uint64_t change_signals(int how, uint64_t set)
{
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &set, &before, sizeof set);
    return before;
}

struct emit_interrupts emit_disable_interrupts(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    struct emit_interrupts before;
    uint64_t all = UINT64_MAX;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        all &= ~(UINT64_C(1) << (faults[i] - 1));
    before.signals = change_signals(SIG_BLOCK, all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.cancel_state);
    return before;
}

void emit_restore_interrupts(struct emit_interrupts before)
{
    int unused;
    pthread_setcancelstate(before.cancel_state, &unused);
    change_signals(SIG_SETMASK, before.signals);
}

void emit_lock(struct emit_process *p)
{
    struct emit_interrupts before = emit_disable_interrupts();
    pthread_mutex_lock(&p->lock);
    p->holder = before;
}

bool emit_trylock(struct emit_process *p)
{
    struct emit_interrupts before = emit_disable_interrupts();
    bool taken = pthread_mutex_trylock(&p->lock) == 0;
    if (taken)
        p->holder = before;
    else
        emit_restore_interrupts(before);
    return taken;
}

void emit_unlock(struct emit_process *p)
{
    struct emit_interrupts before = p->holder;
    pthread_mutex_unlock(&p->lock);
    emit_restore_interrupts(before);
}

void emit_say(const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    if (!emit_process.log)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct emit_interrupts before = emit_disable_interrupts();
    log_line(LOG_WARNING, "%s", text);
    emit_restore_interrupts(before);
}

static struct ring *slot(const struct emit_process *p, uint32_t i)
{
    return (struct ring *)(void *)(p->base + p->at.slots + p->at.slot_bytes * i);
}

// Fills in the header of a segment.
static void fill_header(const struct emit_process *p, const struct emit_segment *s)
{
    struct segment_header *h = (struct segment_header *)(void *)s->base;
    h->version = SEGMENT_VERSION;
    h->pid = (uint32_t)getpid();
    h->start_ticks = process_start_ticks("/proc/self/stat");
    h->agent_inode = s->agent_file.inode;
    h->bytes = p->at.bytes;
    h->ring_bytes = p->ring_bytes;
    h->slots = p->slots;
    h->level = (uint32_t)p->level;
    h->clock = p->clock;
    memcpy(h->socket_path, p->socket_path, sizeof h->socket_path);
    h->magic = SEGMENT_MAGIC;
}

static void use_segment(struct emit_process *p, const struct emit_segment *s)
{
    p->segment = *s;
    p->base = s->base;
    p->header = (struct segment_header *)(void *)s->base;
    p->agent = s->agent;
    p->attached_before = 0;
}

static void close_descriptors(struct emit_process *p)
{
    emit_close(&p->socket);
    emit_close(&p->segment.file);
    emit_close(&p->segment.agent_file);
}

// In a child, with the lock held: replaces the parent's segment by a new one.
static bool start_in_child(struct emit_process *p)
{
    struct error e;
    struct emit_segment fresh;
    uint32_t slots = p->slots;
    if (emit_segment_create(p, &fresh, &e) == 0 && p->slots == slots &&
        emit_reserve(&fresh.file, p->at.definitions, p->definitions_reserved) &&
        emit_reserve(&fresh.file, p->at.gauges, p->gauges_reserved)) {
        fill_header(p, &fresh);
        memcpy(fresh.base + p->at.definitions, p->base + p->at.definitions, p->definitions_bytes);
        struct segment_header *h = (struct segment_header *)(void *)fresh.base;
        // Release: the agent of this child reads the copied definitions after their size.
        atomic_store_explicit(&h->definitions_bytes, p->definitions_bytes, memory_order_release);
        if (mremap(fresh.base, fresh.bytes, fresh.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, p->base) !=
            MAP_FAILED) {
            munmap(p->agent, SEGMENT_AGENT_BYTES);
            fresh.base = p->base;
            use_segment(p, &fresh);
            memset(p->ring_reserved, 0, sizeof p->ring_reserved);
            atomic_store(&p->slots_free, p->slots);
            atomic_store(&p->cells_end, p->definitions);
            atomic_store(p->mark, EMIT_MARK_OURS);
            emit_connect(p, true);
            return true;
        }
    }
    emit_segment_destroy(&fresh);
    // The system lacks memory, descriptors or address space. The child must not write to the
    // parent's segment, so sonde is off in this process.
    emit_say("off in the forked process %d: cannot make its shared memory", (int)getpid());
    atomic_store(&p->state, EMIT_OFF);
    return false;
}

// Counts the handlers of this thread's fork() that have run, because they may be registered more
// than once (watch_forks).
static __thread unsigned fork_handlers;

// The step that all children share: the process now has neither a segment nor a connection.
static void leave_parent(struct emit_process *p)
{
    emit_self = &emit_no_ring;
    atomic_store(&p->cells_end, 0);
    close_descriptors(p);
}

// Forgets that another thread of the parent was starting sonde. Its mapping may be unfinished, and
// is not unmapped.
static void forget_start(struct emit_process *p)
{
    leave_parent(p);
    p->segment = (struct emit_segment){.file = {.fd = -1}, .agent_file = {.fd = -1}};
    p->base = NULL;
    p->definitions = 0;
    p->definitions_bytes = p->definitions_reserved = p->gauges_reserved = 0;
    p->by_identity = (struct map){0};
}

// In a child that has run no handlers: does their work. One of several threads does it, with all
// interruptions disabled, because the others wait for it. The parent's other threads do not exist
// here, and every thread of the child calls this function first. So if the lock is taken, it has no
// owner, and the data that it protects may be inconsistent.
static void mend_after_fork(struct emit_process *p)
{
    struct emit_interrupts before = emit_disable_interrupts();
    uint8_t cleared = EMIT_MARK_CLEARED;
    if (atomic_compare_exchange_strong(p->mark, &cleared, EMIT_MARK_MENDING)) {
        bool on = atomic_load(&p->state) == EMIT_ON, taken = pthread_mutex_trylock(&p->lock) != 0;
        if (taken && on)
            emit_definitions_recover(p);
        else if (taken)
            forget_start(p);
        if (on)
            leave_parent(p);
        if (taken)
            p->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        else
            pthread_mutex_unlock(&p->lock);
        atomic_store(p->mark, on ? EMIT_MARK_FORKED : EMIT_MARK_OURS);
    } else if (cleared == EMIT_MARK_MENDING) {
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 10000}, NULL);
    }
    emit_restore_interrupts(before);
}

// Takes the lock in any process that has a mark.
static void take_lock(struct emit_process *p)
{
    for (uint8_t mark;
         (mark = atomic_load(p->mark)) == EMIT_MARK_CLEARED || mark == EMIT_MARK_MENDING;)
        mend_after_fork(p);
    emit_lock(p);
}

static void before_fork(void)
{
    if (fork_handlers++ == 0)
        take_lock(&emit_process);
}

static void after_fork_in_parent(void)
{
    if (--fork_handlers == 0)
        emit_unlock(&emit_process);
}

static void after_fork_in_child(void)
{
    struct emit_process *p = &emit_process;
    if (--fork_handlers > 0)
        return;
    bool on = atomic_load(&p->state) == EMIT_ON;
    if (on)
        leave_parent(p);
    atomic_store(p->mark, on ? EMIT_MARK_FORKED : EMIT_MARK_OURS);
    emit_unlock(p);
}

// Makes the page of the mark. If several threads make a page, the first one is used.
static void make_mark(struct emit_process *p)
{
    _Atomic uint8_t *none = NULL;
    void *page =
        mmap(NULL, SEGMENT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    // before Linux 4.14, only children of fork() are noticed
    madvise(page, SEGMENT_PAGE, MADV_WIPEONFORK);
    atomic_store((_Atomic uint8_t *)page, EMIT_MARK_OURS);
    if (!atomic_compare_exchange_strong(&p->mark, &none, (_Atomic uint8_t *)page))
        munmap(page, SEGMENT_PAGE);
}

// Registers the fork() handlers; called before a thread takes the lock for the first time. From
// then on a concurrent fork() waits for the lock, so that its child inherits a consistent state. No
// thread waits for another one here, because in a forked child the other thread does not exist. So
// several threads may register the handlers. A fork() that has already run its handlers does not
// wait: its child sees that the mark is cleared.
static bool watch_forks(void)
{
    static _Atomic bool watched;
    struct emit_process *p = &emit_process;
    struct emit_interrupts before = emit_disable_interrupts();
    if (!p->mark)
        make_mark(p);
    if (p->mark && !watched) {
        // if it fails, forks are noticed like a bare clone()
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        watched = true;
    }
    emit_restore_interrupts(before);
    return p->mark != NULL;
}

// Tells ThreadSanitizer about our synchronisation. It sees a library's memcpy(), but not its
// atomics. So it would report a race between two threads that use a slot one after the other.
// ThreadSanitizer exports these functions; without it they are NULL.
extern void __tsan_acquire(void *at) __attribute__((weak, visibility("default")));
extern void __tsan_release(void *at) __attribute__((weak, visibility("default")));

static void thread_has_ended(void *unused)
{
    (void)unused;
    struct ring *r = emit_self;
    if (r == &emit_no_ring || atomic_load(emit_process.mark) != EMIT_MARK_OURS)
        return;
    emit_self = &emit_no_ring;
    if (__tsan_release)
        __tsan_release(r);
    // Release: the thread that claims the ring next also reads our last head and cells.
    atomic_store_explicit(&r->used, false, memory_order_release);
    atomic_fetch_add(&emit_process.slots_free, 1);
}

static uint64_t ring_bytes_setting(void)
{
    const char *text = secure_getenv("SONDE_RING_BYTES");
    uint64_t wanted = SEGMENT_RING_DEFAULT, bytes = SEGMENT_RING_MIN;
    if (text && *text && !str_to_u64(str_of(text), &wanted))
        emit_say("SONDE_RING_BYTES=%s is not a number of bytes; using %d", text,
                 SEGMENT_RING_DEFAULT);
    while (bytes < wanted && bytes < SEGMENT_RING_MAX)
        bytes *= 2;
    return bytes;
}

// Returns a number of slots for four threads a processor.
static uint32_t slot_count(void)
{
    enum { THREADS_PER_PROCESSOR = 4, SLOTS_AT_LEAST = 64 };
    long wanted = sysconf(_SC_NPROCESSORS_CONF) * THREADS_PER_PROCESSOR;
    if (wanted < SLOTS_AT_LEAST)
        return SLOTS_AT_LEAST;
    return wanted > SEGMENT_SLOTS_MAX ? SEGMENT_SLOTS_MAX : (uint32_t)wanted;
}

static bool read_environment(struct emit_process *p)
{
    const char *log = secure_getenv("SONDE_LOG");
    const char *level = secure_getenv("SONDE_LEVEL");
    const char *path = secure_getenv("SONDE_SOCKET");
    p->log = log && *log && strcmp(log, "0") != 0;
    if (!level || !*level || !path || !*path)
        return false;
    int64_t wanted;
    if (!str_to_i64(str_of(level), &wanted) || wanted < 0) {
        emit_say("off: SONDE_LEVEL=%s is not a level (0 to 4)", level);
        return false;
    }
    p->level = wanted > 4 ? 4 : (int)wanted;
    if (strlen(path) >= sizeof p->socket_path) {
        emit_say("off: SONDE_SOCKET is longer than a socket's path can be (%zu bytes)",
                 sizeof p->socket_path - 1);
        return false;
    }
    memcpy(p->socket_path, path, strlen(path) + 1);
    return p->level > 0;
}

// Starts sonde. Called with the lock held, after socket_path and level are set.
static bool start(struct emit_process *p)
{
    struct error e;
    p->clock = clock_ticks_usable() ? SEGMENT_CLOCK_TICKS : SEGMENT_CLOCK_REALTIME;
    p->ring_bytes = ring_bytes_setting();
    p->slots = slot_count();
    if (pthread_key_create(&thread_ends, thread_has_ended) != 0) {
        emit_say("off: no memory");
        return false;
    }
    atomic_store(p->mark, EMIT_MARK_OURS);
    struct emit_segment segment;
    if (emit_segment_create(p, &segment, &e) != 0) {
        emit_say("off: %s", e.text);
        return false;
    }
    use_segment(p, &segment);
    fill_header(p, &segment);
    atomic_store(&p->slots_free, p->slots);
    if (!emit_define_process(p)) {
        emit_say("off: no memory");
        return false;
    }
    emit_connect(p, true);
    return true;
}

bool emit_on(void)
{
    struct emit_process *p = &emit_process;
    // Acquire: a thread that reads EMIT_ON also reads the segment that start() laid out.
    int state = atomic_load_explicit(&p->state, memory_order_acquire);
    if (state == EMIT_OFF || (state == EMIT_NEW && !watch_forks()))
        return false;
    if (state == EMIT_ON && atomic_load_explicit(p->mark, memory_order_relaxed) == EMIT_MARK_OURS)
        return true;
    take_lock(p);
    state = atomic_load(&p->state);
    if (state == EMIT_NEW) {
        state = read_environment(p) && start(p) ? EMIT_ON : EMIT_OFF;
        if (state == EMIT_OFF)
            p->level = 0;
        // Release: start() has laid out the segment before another thread reads EMIT_ON.
        atomic_store_explicit(&p->state, state, memory_order_release);
    } else if (state == EMIT_ON && atomic_load(p->mark) != EMIT_MARK_OURS) {
        state = start_in_child(p) ? EMIT_ON : EMIT_OFF;
    }
    emit_unlock(p);
    return state == EMIT_ON;
}

int sonde_connect(const char *socket_path, int level)
{
    struct emit_process *p = &emit_process;
    if (!socket_path || !*socket_path || level < 1 || level > 4)
        return -EINVAL;
    if (strlen(socket_path) >= sizeof p->socket_path)
        return -ENAMETOOLONG;
    bool on = emit_on(); // this call also gives a forked child a segment of its own
    if (!p->mark)
        return -ENOMEM;
    take_lock(p);
    bool same = on && strcmp(p->socket_path, socket_path) == 0;
    if (!same)
        snprintf(p->socket_path, sizeof p->socket_path, "%s", socket_path);
    if (on && !same) {
        memcpy(p->header->socket_path, p->socket_path, sizeof p->socket_path);
        // Release: an agent that reads the new number also reads the new path.
        atomic_fetch_add_explicit(&p->header->moves, 1, memory_order_release);
        p->attached_before = atomic_load_explicit(&p->agent->attached, memory_order_relaxed);
        p->logged_no_agent = false;
        emit_connect(p, true);
        // the agent's queue was full, or the agent has gone since
    } else if (same && !emit_is_connected(p)) {
        emit_connect(p, true);
    } else if (!on && !p->base) { // handles from another segment would be invalid in this one
        p->level = level;
        on = start(p);
        if (!on)
            p->level = 0;
        // Release: start() has laid out the segment before another thread reads EMIT_ON.
        atomic_store_explicit(&p->state, on ? EMIT_ON : EMIT_OFF, memory_order_release);
    }
    emit_unlock(p);
    return on ? 0 : -ENOMEM;
}

static struct ring *claim(struct emit_process *p)
{
    for (uint32_t i = 0; i < p->slots; i++) {
        struct ring *r = slot(p, i);
        // Acquire: the last head and cells of the thread that gave the ring up are read after this.
        if (i < atomic_load_explicit(&p->header->slots_used, memory_order_relaxed) &&
            atomic_load_explicit(&r->used, memory_order_acquire))
            continue;
        if (__tsan_acquire)
            __tsan_acquire(r);
        if (!emit_reserve(&p->segment.file, (size_t)((char *)r - p->base), SEGMENT_PAGE))
            return NULL;
        // Head and cells continue from the last thread's values, so no data are lost.
        r->mask = p->ring_bytes - 1;
        r->index = i;
        r->ticks = p->header->clock == SEGMENT_CLOCK_TICKS;
        emit_spans_forget(i);
        atomic_store_explicit(&r->used, true, memory_order_relaxed);
        atomic_fetch_sub(&p->slots_free, 1);
        if (i >= atomic_load_explicit(&p->header->slots_used, memory_order_relaxed))
            // Release: an agent that reads the new number also reads the ring's size and index.
            atomic_store_explicit(&p->header->slots_used, i + 1, memory_order_release);
        return r;
    }
    return NULL;
}

struct ring *emit_ring(uint64_t points)
{
    struct emit_process *p = &emit_process;
    if (!emit_on())
        return NULL;
    if (emit_self != &emit_no_ring)
        return emit_self;
    struct ring *r = NULL;
    if (atomic_load_explicit(&p->slots_free, memory_order_relaxed)) {
        emit_lock(p);
        r = claim(p);
        if (r) {
            emit_self = r;
            pthread_setspecific(thread_ends, r); // so that thread_has_ended is called
        }
        emit_unlock(p);
    }
    if (!r) {
        if (points)
            atomic_fetch_add_explicit(&p->header->dropped, points, memory_order_relaxed);
        return NULL;
    }
    return r;
}
