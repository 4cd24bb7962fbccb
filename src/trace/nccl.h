// nccl.h - the part of NCCL's profiler interface, version 4, that sonde implements (NCCL 2.27 and
// newer, and RCCL's copy of it).
//
// The library is built without NCCL, so the declarations are here; the order and the types of the
// fields are the interface. NCCL loads the library that NCCL_PROFILER_PLUGIN names. It calls init
// for each communicator; startEvent and stopEvent when the program enqueues a collective or a
// message; and, from a thread of its own, startEvent, recordEventState and stopEvent for each
// channel of the kernel that carries it out on the GPU. Every function returns success, so that
// sonde never changes what the program does.
//
// The cost of a collective: two calls of the program's thread and three of NCCL's thread for each
// channel, 175 ns together for one channel. Memory: 2.2 KiB for each of 1,024 operations on the
// way, of which the kernel maps the used ones; 1 KiB for each communicator, 256 at most.
#ifndef SONDE_TRACE_NCCL_H
#define SONDE_TRACE_NCCL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum nccl_result { NCCL_SUCCESS = 0 };

// Types of events; init returns a mask of them.
enum nccl_event {
    NCCL_GROUP = 1 << 0,
    NCCL_COLLECTIVE = 1 << 1,
    NCCL_MESSAGE = 1 << 2,
    NCCL_PROXY_OPERATION = 1 << 3,
    NCCL_KERNEL_CHANNEL = 1 << 6,
};

enum nccl_state { NCCL_KERNEL_CHANNEL_STOP = 22 };

struct nccl_description {
    uint8_t type;
    void *parent; // the handle of the event that this one belongs to
    int rank;
    union {
        struct {
            uint64_t number;
            const char *function;
            const void *send;
            void *receive;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } collective;
        struct {
            const char *function;
            void *data;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
        } message;
        struct {
            pid_t process;
            uint8_t channel;
            int peer, steps, chunk, sends;
        } proxy_operation;
        struct {
            uint8_t channel;
            uint64_t gpu_ns; // of the GPU's clock
        } kernel_channel;
        struct {
            int64_t id;
            void *data;
        } plugin;
    };
};

union nccl_state_arguments {
    struct {
        size_t size;
    } proxy_step;
    struct {
        int appended;
    } proxy_control;
    struct {
        void *data;
    } plugin;
    struct {
        uint64_t gpu_ns;
    } kernel_channel;
};

struct nccl_profiler {
    const char *name;
    int (*init)(void **context, int *mask, const char *communicator, uint64_t hash, int nodes,
                int ranks, int rank,
                void (*log)(int, unsigned long, const char *, int, const char *, ...));
    int (*start_event)(void *context, void **handle, struct nccl_description *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, union nccl_state_arguments *arguments);
    int (*finalize)(void *context);
};

__attribute__((visibility("default"))) extern const struct nccl_profiler ncclProfiler_v4;

#endif
