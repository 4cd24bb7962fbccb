// collectives collective COUNT: the processor time of the calls that NCCL makes for a collective
// with one channel, in ns. Loads the profiler library as NCCL does; without one, makes no calls.
#include "../../src/trace/nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void collectives(const struct nccl_profiler *nccl, void *context, int count)
{
    for (int i = 0; i < count; i++) {
        __asm__ volatile("" ::: "memory"); // or the compiler removes the loop
        if (!nccl)
            continue;
        void *operation = NULL, *channel = NULL;
        struct nccl_description event = {
            .type = NCCL_COLLECTIVE,
            .collective = {
                .function = "AllReduce", .count = 1000, .datatype = "ncclFloat32", .channels = 1}};
        nccl->start_event(context, &operation, &event);
        nccl->stop_event(operation);
        event = (struct nccl_description){.type = NCCL_KERNEL_CHANNEL, .parent = operation};
        event.kernel_channel.gpu_ns = 1000;
        nccl->start_event(context, &channel, &event);
        union nccl_state_arguments stop = {.kernel_channel = {.gpu_ns = 2000}};
        nccl->record_event_state(channel, NCCL_KERNEL_CHANNEL_STOP, &stop);
        nccl->stop_event(channel);
    }
}

int main(int count, char **arguments)
{
    const char *file = getenv("NCCL_PROFILER_PLUGIN");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct nccl_profiler *nccl = library ? dlsym(library, "ncclProfiler_v4") : NULL;
    void *context = NULL;
    int mask = 0;
    if (count != 3 || (file && !nccl))
        return 2;
    if (nccl)
        nccl->init(&context, &mask, "world", 1, 1, 1, 0, NULL);
    int calls = atoi(arguments[2]);
    collectives(nccl, context, calls);
    double begin = now_ns();
    collectives(nccl, context, calls);
    printf("%.1f\n", (now_ns() - begin) / calls);
    return 0;
}
