// collectives collective COUNT: the processor time of the calls that NCCL makes for a collective
// with one channel, in ns. Loads the profiler library as NCCL does; without one, makes no calls.
#include "../../src/trace/nccl.h"
#include "measure.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct nccl_profiler *nccl; // NULL: without the library
static void *context;

static void collectives(int count)
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
    nccl = library ? dlsym(library, "ncclProfiler_v4") : NULL;
    int mask = 0;
    if (count != 3 || (file && !nccl))
        return 2;
    if (nccl)
        nccl->init(&context, &mask, "world", 1, 1, 1, 0, NULL);
    measure(collectives, atoi(arguments[2]));
    return 0;
}
