#include "base/parallel.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

struct each {
    size_t count;
    parallel_fn *work;
    void *user;
    _Atomic size_t next;
};

static void *take_pieces(void *user)
{
    struct each *e = user;
    size_t i;
    while ((i = atomic_fetch_add(&e->next, 1)) < e->count)
        e->work(e->user, i);
    return NULL;
}

// Finds the processors that the first thread may use: of the others, parallel_start restricts some.
static bool find_allowed(cpu_set_t *out)
{
    return sched_getaffinity(getpid(), sizeof *out, out) == 0;
}

size_t parallel_processors(void)
{
    cpu_set_t allowed;
    if (find_allowed(&allowed))
        return (size_t)CPU_COUNT(&allowed);
    long online = sysconf(_SC_NPROCESSORS_ONLN); // too many processors for a cpu_set_t
    return online > 0 ? (size_t)online : 1;
}

int parallel_start(pthread_t *out, void *(*run)(void *user), void *user)
{
#ifdef __GLIBC__
    cpu_set_t others;
    int here = sched_getcpu();
    if (here >= 0 && here < CPU_SETSIZE && find_allowed(&others)) {
        CPU_CLR((size_t)here, &others);
        pthread_attr_t attributes;
        if (CPU_COUNT(&others) > 0 && pthread_attr_init(&attributes) == 0) {
            int failed = pthread_attr_setaffinity_np(&attributes, sizeof others, &others);
            if (!failed)
                failed = pthread_create(out, &attributes, run, user);
            pthread_attr_destroy(&attributes);
            if (!failed)
                return 0;
        }
    }
#endif
    return pthread_create(out, NULL, run, user);
}

void parallel_each(size_t count, parallel_fn *work, void *user)
{
    struct each e = {.count = count, .work = work, .user = user};
    pthread_t threads[PARALLEL_THREADS_MAX];
    size_t processors = parallel_processors(), started = 0;
    while (started + 1 < PARALLEL_THREADS_MAX && started + 1 < count && started + 1 < processors &&
           parallel_start(&threads[started], take_pieces, &e) == 0)
        started++;
    take_pieces(&e);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}
