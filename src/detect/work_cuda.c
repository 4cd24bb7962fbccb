// work_cuda.c - the probe's work for NVIDIA's GPUs: PTX, the portable assembly that the driver
// translates for the GPU (compute capability 5.0, of 2014, or later; the driver caches
// translations). Its version is the first with that capability, so every driver accepts it. It
// needs no toolkit, runtime or compiler.
#include "detect/gpu_driver.h"

static const char ptx[] =
    ".version 4.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    // Eight chains of multiply-adds per thread; the result is written only if it is negative, which
    // it never is.
    ".visible .entry sonde_compute(.param .u64 out, .param .u32 rounds)\n"
    "{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<12>; .reg .b64 %d<2>;\n"
    " ld.param.u64 %d0, [out]; ld.param.u32 %r0, [rounds];\n"
    " mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f8, %r1; mov.f32 %f9, 0f3F7FFFF0; mov.f32 %f10, "
    "0f3A83126F;\n"
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
    // All threads together read `vectors` of 16 bytes; neighbouring threads read neighbouring
    // vectors.
    ".visible .entry sonde_memory(.param .u64 data, .param .u64 vectors, .param .u64 out)\n"
    "{\n"
    " .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<6>; .reg .b64 %d<8>;\n"
    " ld.param.u64 %d0, [data]; ld.param.u64 %d1, [vectors]; ld.param.u64 %d2, [out];\n"
    " mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %nctaid.x;\n"
    " mul.wide.u32 %d3, %r0, %r1; cvt.u64.u32 %d4, %r2; add.u64 %d3, %d3, %d4; mul.wide.u32 %d5, "
    "%r3, %r1;\n"
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

static int make_work(const char **work, char **allocated, struct error *e)
{
    (void)e;
    *work = ptx;
    *allocated = NULL;
    return 0;
}

const struct gpu_make gpu_make_cuda = {
    .libraries = {"libcuda.so.1"},
    .multiprocessors = 16, // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    // of 8 multiply-adds a thread: 64 cycles a round and multiprocessor, 1.4 ms at 1.8 GHz
    .rounds = 40000,
    .memory_bytes = (size_t)256 << 20, // an H200 has a cache of 50 MB
    .make_work = make_work,
};
