// probe_cuda.c - the probe of NVIDIA's GPUs, through the driver's own library: no toolkit, no runtime, no compiler.
//
// The work is PTX, the driver's portable assembly, which it translates for the GPU at hand (from compute capability 5.0, of 2014, on; translations are kept in
// its cache). Times are taken by the GPU (events around the work), so what the processor does meanwhile is not in them; other programs on
// the GPU are.
#include "detect/cuda.h"
#include "detect/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCKS_EACH = 4, // of 256 threads, on every multiprocessor
    THREADS = 256,
    ROUNDS = 40000, // of 8 multiply-adds a thread: 64 cycles a round and multiprocessor, 1.4 ms at 1.8 GHz
    LAUNCHES = 4,   // that are timed
    WARM_UP = 12,   // that are not: the clock rises while there is work
    VECTOR_BYTES = 16,
};

// Twice the largest cache there is (an H200's 50 MB), and half of that where there is less room; fewer would time the cache.
static const size_t MEMORY_MOST = (size_t)256 << 20, MEMORY_LEAST = (size_t)128 << 20;
static const size_t MEMORY_READ = (size_t)4 << 30; // bytes in all: 1 ms on an H200

static const char work[] =
    ".version 6.4\n"
    ".target sm_50\n"
    ".address_size 64\n"
    // Eight chains of multiply-adds a thread; the result is written only if it is negative, which it never is.
    ".visible .entry sonde_compute(.param .u64 out, .param .u32 rounds)\n"
    "{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<12>; .reg .b64 %d<2>;\n"
    " ld.param.u64 %d0, [out]; ld.param.u32 %r0, [rounds];\n"
    " mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f8, %r1; mov.f32 %f9, 0f3F7FFFF0; mov.f32 %f10, 0f3A83126F;\n"
    " mov.f32 %f0, %f8; add.f32 %f1, %f8, %f9; add.f32 %f2, %f1, %f9; add.f32 %f3, %f2, %f9;\n"
    " add.f32 %f4, %f3, %f9; add.f32 %f5, %f4, %f9; add.f32 %f6, %f5, %f9; add.f32 %f7, %f6, %f9;\n"
    "again:\n"
    " fma.rn.f32 %f0, %f0, %f9, %f10; fma.rn.f32 %f1, %f1, %f9, %f10;\n"
    " fma.rn.f32 %f2, %f2, %f9, %f10; fma.rn.f32 %f3, %f3, %f9, %f10;\n"
    " fma.rn.f32 %f4, %f4, %f9, %f10; fma.rn.f32 %f5, %f5, %f9, %f10;\n"
    " fma.rn.f32 %f6, %f6, %f9, %f10; fma.rn.f32 %f7, %f7, %f9, %f10;\n"
    " sub.u32 %r0, %r0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra again;\n"
    " add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f4, %f4, %f5; add.f32 %f6, %f6, %f7;\n"
    " add.f32 %f0, %f0, %f2; add.f32 %f4, %f4, %f6; add.f32 %f0, %f0, %f4;\n"
    " setp.lt.f32 %p1, %f0, 0f00000000; @%p1 st.global.f32 [%d0], %f0;\n"
    " ret;\n"
    "}\n"
    // All threads together read `vectors` of 16 bytes, neighbours by neighbours.
    ".visible .entry sonde_memory(.param .u64 data, .param .u64 vectors, .param .u64 out)\n"
    "{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .b64 %d<8>;\n"
    " ld.param.u64 %d0, [data]; ld.param.u64 %d1, [vectors]; ld.param.u64 %d2, [out];\n"
    " mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;\n"
    " mul.wide.u32 %d3, %r0, %r1; cvt.u64.u32 %d4, %r2; add.u64 %d3, %d3, %d4; mul.wide.u32 %d5, %r3, %r1;\n"
    " mov.f32 %f4, 0f00000000;\n"
    " setp.ge.u64 %p0, %d3, %d1; @%p0 bra done;\n"
    "again:\n"
    " shl.b64 %d6, %d3, 4; add.u64 %d6, %d6, %d0; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d6];\n"
    " add.f32 %f4, %f4, %f0; add.f32 %f4, %f4, %f1; add.f32 %f4, %f4, %f2; add.f32 %f4, %f4, %f3;\n"
    " add.u64 %d3, %d3, %d5; setp.lt.u64 %p0, %d3, %d1; @%p0 bra again;\n"
    "done:\n"
    " setp.lt.f32 %p1, %f4, 0f00000000; @%p1 st.global.f32 [%d2], %f4;\n"
    " ret;\n"
    "}\n";

// ---------------------------------------------------------------- the library

static int failed(const struct cuda *c, int result, const char *what, struct error *e)
{
    const char *name = NULL;
    c->error_name(result, &name);
    return error_set(e, result == CUDA_OUT_OF_MEMORY ? -EBUSY : -EIO, "%s: %s (%d)", what, name ? name : "an error",
                     result);
}

static int open_library(struct cuda *c, struct error *e)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(e, -ENOENT, "there is no libcuda.so.1 (NVIDIA's driver)");
#define CUDA_FIND(name, symbol, parameters)                                 \
    {                                                                       \
        void *found = dlsym(library, symbol);                               \
        if (!found)                                                         \
            return error_set(e, -ENOSYS, "libcuda.so.1 has no %s", symbol); \
        memcpy(&c->name, &found, sizeof found);                             \
    }
    CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
    int result = c->init(0);
    return result == CUDA_SUCCESS || result == CUDA_NO_DEVICE ? result
                                                              : failed(c, result, "the driver does not start", e);
}

int probe_cuda_count(struct error *e)
{
    struct cuda c;
    int count = 0, status = open_library(&c, e);
    if (status < 0 || status == CUDA_NO_DEVICE)
        return status < 0 ? status : 0;
    int result = c.device_count(&count);
    return result == CUDA_SUCCESS ? count : failed(&c, result, "the driver does not count its devices", e);
}

// ---------------------------------------------------------------- the work

struct kernel {
    void *function;
    unsigned blocks;
    void **parameters;
    unsigned launches, warm_up;
};

// Times `launches` of it, in seconds, on the device's own clock.
static int time_kernel(const struct cuda *c, const struct kernel *k, double *seconds)
{
    void *from, *to;
    float ms = 0;
    int result = c->event_create(&from, 0);
    if (result == CUDA_SUCCESS)
        result = c->event_create(&to, 0);
    for (unsigned i = 0; i < k->warm_up + k->launches && result == CUDA_SUCCESS; i++) {
        if (i == k->warm_up)
            result = c->event_record(from, NULL);
        if (result == CUDA_SUCCESS)
            result = c->launch(k->function, k->blocks, 1, 1, THREADS, 1, 1, 0, NULL, k->parameters, NULL);
    }
    if (result == CUDA_SUCCESS)
        result = c->event_record(to, NULL);
    if (result == CUDA_SUCCESS)
        result = c->event_wait(to);
    if (result == CUDA_SUCCESS)
        result = c->event_elapsed(&ms, from, to);
    *seconds = (double)ms / 1e3;
    return result; // the context takes the events with it
}

static int time_compute(const struct cuda *c, void *module, unsigned blocks, cuda_memory out, double *seconds)
{
    unsigned rounds = ROUNDS;
    void *parameters[] = {&out, &rounds};
    struct kernel k = {.blocks = blocks, .parameters = parameters, .launches = LAUNCHES, .warm_up = WARM_UP};
    int result = c->module_function(&k.function, module, "sonde_compute");
    return result == CUDA_SUCCESS ? time_kernel(c, &k, seconds) : result;
}

// Without the room: success, and NaN.
static int time_memory(const struct cuda *c, void *module, unsigned blocks, cuda_memory out, double *seconds)
{
    *seconds = NAN;
    cuda_memory data = 0;
    size_t bytes = MEMORY_MOST;
    int result = c->memory_alloc(&data, bytes);
    for (; result == CUDA_OUT_OF_MEMORY && bytes > MEMORY_LEAST; result = c->memory_alloc(&data, bytes))
        bytes /= 2;
    if (result != CUDA_SUCCESS)
        return result == CUDA_OUT_OF_MEMORY ? CUDA_SUCCESS : result;
    result = c->memory_set(data, 0, bytes / sizeof(uint32_t));
    uint64_t vectors = bytes / VECTOR_BYTES;
    void *parameters[] = {&data, &vectors, &out};
    struct kernel k = {
        .blocks = blocks, .parameters = parameters, .launches = (unsigned)(MEMORY_READ / bytes), .warm_up = 1};
    if (result == CUDA_SUCCESS)
        result = c->module_function(&k.function, module, "sonde_memory");
    return result == CUDA_SUCCESS ? time_kernel(c, &k, seconds) : result;
}

static int run_in_context(const struct cuda *c, int device, struct probe_result *out, struct error *e)
{
    void *module;
    cuda_memory result_at;
    int processors = 0;
    int result = c->device_attribute(&processors, CUDA_ATTRIBUTE_MULTIPROCESSORS, device);
    if (result == CUDA_SUCCESS)
        result = c->module_load(&module, work);
    if (result == CUDA_SUCCESS)
        result = c->memory_alloc(&result_at, sizeof(float));
    if (result != CUDA_SUCCESS)
        return failed(c, result, "the work cannot be loaded", e);
    unsigned blocks = (unsigned)(processors > 0 ? processors : 1) * BLOCKS_EACH;
    result = time_compute(c, module, blocks, result_at, &out->compute_s);
    if (result == CUDA_SUCCESS)
        result = time_memory(c, module, blocks, result_at, &out->memory_s);
    return result == CUDA_SUCCESS ? 0 : failed(c, result, "the work failed", e);
}

// As nvidia-smi writes it: GPU-8-4-4-4-12.
static void write_uuid(const unsigned char bytes[CUDA_UUID_BYTES], char out[PROBE_UUID_MAX])
{
    size_t at = (size_t)snprintf(out, PROBE_UUID_MAX, "GPU-");
    for (int i = 0; i < CUDA_UUID_BYTES; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(out + at, PROBE_UUID_MAX - at, "%s%02x", dash ? "-" : "", bytes[i]);
    }
}

int probe_cuda_run(int index, struct probe_result *out, struct error *e)
{
    struct cuda c;
    int device, status = open_library(&c, e);
    if (status < 0)
        return status;
    if (status == CUDA_NO_DEVICE || c.device_get(&device, index) != CUDA_SUCCESS)
        return error_set(e, -ENOENT, "there is no GPU %d", index);
    unsigned char uuid[CUDA_UUID_BYTES];
    if (c.device_uuid(uuid, device) == CUDA_SUCCESS)
        write_uuid(uuid, out->uuid);
    if (c.device_name(out->name, sizeof out->name, device) != CUDA_SUCCESS)
        out->name[0] = 0;
    void *context;
    int result = c.context_create(&context, 0, device);
    if (result != CUDA_SUCCESS)
        return failed(&c, result, "the GPU cannot be used", e);
    status = run_in_context(&c, device, out, e);
    c.context_destroy(context); // with all that it holds
    return status;
}
