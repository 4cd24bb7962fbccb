#include "store/map_guard.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK_GUARDS = 64 };

// The handler searches all guards while other threads add and remove guards. It skips a guard that
// is changing (`changes` is odd, or different afterwards). It never needs such a guard, because a
// guard stays unchanged while its mapping is used.
struct map_guard {
    atomic_uint changes;
    _Atomic uintptr_t begin, end; // 0, 0: unused
    _Atomic int prot, fd;
    _Atomic(_Atomic uint64_t *) lost;
    struct map_guard *next_free;
};

// Chunks are never freed, because the handler may be reading them.
struct chunk {
    struct map_guard guards[CHUNK_GUARDS];
    struct chunk *next; // a stack that the signal handler walks without a lock
};

static _Atomic(struct chunk *) chunks;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map_guard *free_guards; // protected by the mutex, like the variables below
static size_t guard_count;
static bool installed;
static struct sigaction before;
static uintptr_t page_bytes;

void map_guard_lose(_Atomic uint64_t *lost, uint64_t offset)
{
    uint64_t now = atomic_load(lost);
    while (offset < now && !atomic_compare_exchange_weak(lost, &now, offset))
        continue;
}

// ---- In the handler ----

static bool recover_at(uintptr_t address)
{
    for (struct chunk *c = atomic_load(&chunks); c; c = c->next)
        for (size_t i = 0; i < CHUNK_GUARDS; i++) {
            struct map_guard *g = &c->guards[i];
            unsigned changes = atomic_load(&g->changes);
            uintptr_t begin = atomic_load(&g->begin), end = atomic_load(&g->end);
            int prot = atomic_load(&g->prot), fd = atomic_load(&g->fd);
            _Atomic uint64_t *lost = atomic_load(&g->lost);
            if (changes % 2 || atomic_load(&g->changes) != changes || address < begin ||
                address >= end)
                continue;
            uintptr_t page = address & ~(page_bytes - 1);
            // Set *lost first, so that a thread that sees zeros also sees *lost. The file may end
            // within an earlier page, whose bytes after the end read as zeros without a signal.
            struct stat st;
            map_guard_lose(lost, page - begin);
            if (!fstat(fd, &st))
                map_guard_lose(lost, (uint64_t)st.st_size);
            // Use the bare system call, which is safe in a handler. Thread checkers do not mistake
            // it for a write that races with readers.
            return syscall(SYS_mmap, page, end - page, prot,
                           MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != -1;
        }
    return false;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    struct sigaction old = before;
    // true if kill(2) or a similar call sent the signal; otherwise an instruction faulted, and will
    // fault again
    bool sent = info->si_code <= 0;
    struct sigaction standard = {.sa_handler = SIG_DFL};
    bool handled =
        old.sa_flags & SA_SIGINFO || (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN);
    if (!handled && old.sa_handler == SIG_IGN && sent)
        return;
    if (!handled || old.sa_flags & (int)SA_RESETHAND)
        sigaction(SIGBUS, &standard, NULL);
    if (!handled && sent)
        raise(SIGBUS); // takes effect when this handler has returned
    else if (old.sa_flags & SA_SIGINFO)
        old.sa_sigaction(number, info, context);
    else if (handled)
        old.sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (info->si_code <= 0 || !recover_at((uintptr_t)info->si_addr))
        pass_on(number, info, context);
    errno = kept;
}

// ---- Under the mutex ----

static bool is_ours(const struct sigaction *a)
{
    return a->sa_flags & SA_SIGINFO && a->sa_sigaction == on_bus_error;
}

static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_bus_error,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    // The previous handler is stored before our handler may need it.
    installed = !sigaction(SIGBUS, NULL, &before) && !sigaction(SIGBUS, &ours, NULL);
}

// If a later handler has replaced ours, it may call ours. Then ours stays installed, and passes
// signals on to the previous one.
static void uninstall(void)
{
    struct sigaction now;
    if (!sigaction(SIGBUS, NULL, &now) && is_ours(&now))
        installed = sigaction(SIGBUS, &before, NULL) != 0;
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static bool add_chunk(void)
{
    struct chunk *c = calloc(1, sizeof *c);
    if (!c)
        return false;
    // A child must be able to open files, whatever other threads did during the fork.
    if (!atomic_load(&chunks))
        pthread_atfork(lock, unlock, unlock);
    for (size_t i = 0; i < CHUNK_GUARDS; i++) {
        c->guards[i].next_free = free_guards;
        free_guards = &c->guards[i];
    }
    c->next = atomic_load(&chunks);
    atomic_store(&chunks, c);
    return true;
}

static void set(struct map_guard *g, uintptr_t begin, uintptr_t end, int prot, int fd,
                _Atomic uint64_t *lost)
{
    atomic_fetch_add(&g->changes, 1);
    atomic_store(&g->begin, begin);
    atomic_store(&g->end, end);
    atomic_store(&g->prot, prot);
    atomic_store(&g->fd, fd);
    atomic_store(&g->lost, lost);
    atomic_fetch_add(&g->changes, 1);
}

struct map_guard *map_guard_add(void *base, size_t size, int prot, int fd, _Atomic uint64_t *lost)
{
    lock();
    struct map_guard *g = free_guards || add_chunk() ? free_guards : NULL;
    if (g) {
        free_guards = g->next_free;
        guard_count++;
        set(g, (uintptr_t)base, (uintptr_t)base + size, prot, fd, lost);
        if (!installed)
            install();
    }
    unlock();
    return g;
}

void map_guard_remove(struct map_guard *g)
{
    if (!g)
        return;
    lock();
    set(g, 0, 0, 0, -1, NULL);
    g->next_free = free_guards;
    free_guards = g;
    assert(guard_count);
    if (--guard_count == 0 && installed)
        uninstall();
    unlock();
}
