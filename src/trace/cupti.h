// cupti.h - the part of CUPTI's activity interface that sonde uses, and the entry by which NVIDIA's
// driver starts the library.
//
// The library is built without CUDA, so the declarations are here. CUPTI appends fields to its
// records from version to version; those below have had their places since CUDA 8, and were
// compared with the headers of CUDA 11.8, 12.1 and 13.0. The driver loads the library that
// CUDA_INJECTION64_PATH names when the program initializes CUDA, and calls InitializeInjection. The
// library opens CUPTI at run time: that of the program, of a Python package, or of the toolkit.
//
// CUPTI writes a record for each kernel, copy and wait into buffers, and hands full buffers to a
// thread of its own. sonde asks for them once a second as well, and counts in cells of libsonde.
// The cost for a program: what CUPTI takes at a launch (docs/trace.md has figures). Memory: up to
// BUFFERS_KEPT + 1 buffers of 256 KiB, each with 1,200 kernels; 90 KiB for names; CUPTI's own
// buffers on the GPU.
#ifndef SONDE_TRACE_CUPTI_H
#define SONDE_TRACE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result { CUPTI_SUCCESS = 0 };

// Kinds of records.
enum cupti_kind {
    CUPTI_COPY = 1,
    CUPTI_SET = 2,
    CUPTI_KERNEL = 10,
    CUPTI_COPY_BETWEEN_GPUS = 22,
    CUPTI_WAIT = 38,
};

enum cupti_copy_kind {
    CUPTI_HOST_TO_DEVICE = 1,
    CUPTI_DEVICE_TO_HOST = 2,
    CUPTI_DEVICE_TO_DEVICE = 8,
    CUPTI_HOST_TO_HOST = 9,
    CUPTI_GPU_TO_GPU = 10,
};

enum cupti_memory { CUPTI_PAGEABLE = 1 };

enum cupti_wait_kind {
    CUPTI_WAIT_FOR_EVENT = 1,
    CUPTI_STREAM_WAITS = 2, // on the GPU; the program does not wait
    CUPTI_WAIT_FOR_STREAM = 3,
    CUPTI_WAIT_FOR_CONTEXT = 4,
};

// Times are ns of CLOCK_REALTIME; 0: not known.
struct cupti_kernel {
    uint32_t kind;
    uint8_t unused[12];
    uint64_t start_ns, end_ns, completed_ns;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local_each, local_all, correlation;
    int64_t grid_id;
    const char *name; // lives as long as the kernel's module, longer than the record
};

// Of a copy, a copy between GPUs, and of setting memory (copy_kind to flags are its value).
struct cupti_copy {
    uint32_t kind;
    uint8_t copy_kind, from_memory, to_memory, flags;
    uint64_t bytes, start_ns, end_ns;
    uint32_t device;
};

struct cupti_wait {
    uint32_t kind, wait_kind;
    uint64_t start_ns, end_ns;
};

_Static_assert(offsetof(struct cupti_kernel, start_ns) == 16 &&
                   offsetof(struct cupti_kernel, device) == 40 &&
                   offsetof(struct cupti_kernel, correlation) == 92 &&
                   offsetof(struct cupti_kernel, name) == 104 &&
                   offsetof(struct cupti_copy, bytes) == 8 &&
                   offsetof(struct cupti_copy, device) == 32 &&
                   offsetof(struct cupti_wait, start_ns) == 8,
               "as in CUPTI's headers");

typedef void (*cupti_buffer_wanted)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*cupti_buffer_full)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                  size_t used);

enum { CUPTI_FORCED = 1 }; // also buffers with records that are not complete

// Each row has CUPTI's symbol, our name and the parameters. All return a result.
#define CUPTI_FUNCTIONS(F)                                  \
    F("cuptiActivityRegisterCallbacks", set_callbacks,      \
      (cupti_buffer_wanted wanted, cupti_buffer_full full)) \
    F("cuptiActivityEnable", enable, (uint32_t kind))       \
    F("cuptiActivityFlushAll", flush, (uint32_t flag))      \
    F("cuptiActivityGetNextRecord", next_record,            \
      (uint8_t * buffer, size_t used, const void **record)) \
    F("cuptiActivityGetNumDroppedRecords", dropped, (void *context, uint32_t stream, size_t *count))

#define CUPTI_MEMBER(symbol, name, parameters) int(*name) parameters;
struct cupti {
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
};
#undef CUPTI_MEMBER

// Returns 1. Called by the driver, once.
__attribute__((visibility("default"))) int InitializeInjection(void);

#endif
