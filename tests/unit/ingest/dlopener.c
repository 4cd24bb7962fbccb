// dlopener.c - LIBRARY: loads libsonde at run time, emits from three threads, and closes it while
// two of them still run.
#include "sonde.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

static sonde_handle (*gauge)(const char *, const char *);
static void (*put)(sonde_handle, double);
static pthread_barrier_t emitted, closed;

static void emit_thousand(void)
{
    sonde_handle h = gauge("dlopened", "");
    for (int i = 0; i < 1000; i++)
        if (h)
            put(h, i);
}

static void *thread_emits(void *unused)
{
    emit_thousand();
    pthread_barrier_wait(&emitted);
    pthread_barrier_wait(&closed);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 1;
    gauge = (sonde_handle(*)(const char *, const char *))(uintptr_t)dlsym(library, "sonde_gauge");
    put = (void (*)(sonde_handle, double))(uintptr_t)dlsym(library, "sonde_put_point");
    if (!gauge || !put)
        return 2;
    pthread_barrier_init(&emitted, NULL, 3);
    pthread_barrier_init(&closed, NULL, 3);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, thread_emits, NULL) != 0)
            return 3;
    emit_thousand();
    pthread_barrier_wait(&emitted);
    dlclose(library);
    pthread_barrier_wait(&closed);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
