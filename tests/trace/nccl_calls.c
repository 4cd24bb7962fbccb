// Calls NCCL's profiler library as NCCL does, and as it does not. Arguments: ranks RANKS ROUNDS
// SLOW (all-reduces of 1,000,000 floats over 4 channels and one message each), lost COUNT
// (operations whose end is never reported), rank RANKS ROUNDS SLOW RANK (only this rank of
// them), or odd.
#include "trace/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 4 };
static const struct nccl_profiler *nccl;
static int ranks, rounds, slow;

static void *open_communicator(const char *name, int rank)
{
    void *context = NULL;
    int mask = 0;
    nccl->init(&context, &mask, name, 7, 1, ranks, rank, NULL);
    if (mask != (NCCL_COLLECTIVE | NCCL_MESSAGE | NCCL_KERNEL_CHANNEL))
        printf("mask %d\n", mask);
    return context;
}

static void *enqueue(void *context, const char *function)
{
    void *handle = NULL;
    struct nccl_description event = {.type = NCCL_COLLECTIVE,
                                     .collective = {.function = function,
                                                    .count = 1000000,
                                                    .datatype = "ncclFloat32",
                                                    .channels = CHANNELS,
                                                    .algorithm = "RING",
                                                    .protocol = "LL128"}};
    nccl->start_event(context, &handle, &event);
    nccl->stop_event(handle);
    return handle;
}

// The kernel of an operation: each channel begins and ends a little later than the one before.
static void kernel(void *context, void *operation, int channels, uint64_t begin, uint64_t end)
{
    void *parts[64];
    for (int i = 0; i < channels; i++) {
        struct nccl_description event = {.type = NCCL_KERNEL_CHANNEL, .parent = operation};
        event.kernel_channel.channel = (uint8_t)i;
        event.kernel_channel.gpu_ns = begin + (uint64_t)i;
        nccl->start_event(context, &parts[i], &event);
    }
    for (int i = 0; i < channels; i++) {
        union nccl_state_arguments stop = {
            .kernel_channel = {.gpu_ns = end - (uint64_t)(channels - 1 - i)}};
        nccl->record_event_state(parts[i], NCCL_KERNEL_CHANNEL_STOP, &stop);
        nccl->stop_event(parts[i]);
    }
}

// All ranks leave an all-reduce together; the slow one enters it 5 ms later.
static void *run_rank(void *number)
{
    int rank = *(int *)number;
    void *context = open_communicator("data parallel", rank);
    for (int i = 0; i < rounds; i++) {
        uint64_t at = 1000000000 + (uint64_t)i * 10000000;
        kernel(context, enqueue(context, "AllReduce"), CHANNELS, at + (rank == slow ? 5000000 : 0),
               at + 6000000);
        void *message = NULL;
        struct nccl_description event = {.type = NCCL_MESSAGE,
                                         .message = {.function = rank % 2 ? "Send" : "Recv",
                                                     .count = 10,
                                                     .datatype = "ncclInt64",
                                                     .channels = 1}};
        nccl->start_event(context, &message, &event);
        kernel(context, message, 1, at + 7000000, at + 7500000);
        nccl->stop_event(message); // the kernel was faster than the program's thread
    }
    nccl->finalize(context);
    return NULL;
}

static void odd(void)
{
    void *context = open_communicator(NULL, 0), *handle = NULL;
    struct nccl_description event = {.type = 255};
    nccl->start_event(context, &handle, &event);
    nccl->start_event(context, NULL, &event);
    nccl->start_event(NULL, &handle, &event);
    nccl->start_event(context, &handle, NULL);
    nccl->stop_event(NULL);
    nccl->record_event_state(NULL, NCCL_KERNEL_CHANNEL_STOP, NULL);
    kernel(context, NULL, 2, 5, 6);
    kernel(context, &event, 2, 5, 6); // not a handle of sonde
    void *operation = enqueue(context, "AllReduceOfTheFuture");
    nccl->record_event_state(operation, NCCL_KERNEL_CHANNEL_STOP, NULL);
    nccl->record_event_state(operation, 99, NULL);
    nccl->stop_event(operation); // twice
    event = (struct nccl_description){
        .type = NCCL_KERNEL_CHANNEL, .parent = operation, .kernel_channel = {.channel = 200}};
    nccl->start_event(context, &handle, &event);
    kernel(context, operation, CHANNELS, 1000, 500);  // the GPU's clock goes backwards
    kernel(context, operation, CHANNELS, 1000, 2000); // after its end
    event = (struct nccl_description){.type = NCCL_COLLECTIVE};
    nccl->start_event(context, &operation, &event); // no name, no type
    nccl->init(NULL, NULL, NULL, 0, 0, 0, 0, NULL);
    nccl->finalize(NULL);
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int numbers[64];
    const char *file = getenv("NCCL_PROFILER_PLUGIN");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    nccl = library ? dlsym(library, "ncclProfiler_v4") : NULL;
    if (argc < 2 || !nccl) {
        fprintf(stderr, "no library: %s\n", dlerror());
        return 2;
    }
    ranks = argc > 2 ? atoi(argv[2]) : 1;
    rounds = argc > 3 ? atoi(argv[3]) : 0;
    slow = argc > 4 ? atoi(argv[4]) : -1;
    if (strcmp(argv[1], "odd") == 0)
        odd();
    else if (strcmp(argv[1], "rank") == 0 && argc > 5)
        run_rank(&(int){atoi(argv[5])});
    else if (strcmp(argv[1], "lost") == 0)
        for (void *context = open_communicator("lost", 0); ranks--;)
            enqueue(context, "AllGather");
    else
        for (int i = 0; i < ranks && i < 64; i++) {
            numbers[i] = i;
            pthread_create(&threads[i], NULL, run_rank, &numbers[i]);
        }
    for (int i = 0; strcmp(argv[1], "ranks") == 0 && i < ranks && i < 64; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
