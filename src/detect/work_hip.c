// work_hip.c - the probe's work for AMD's GPUs: HIP has no portable assembly, so ROCm's libhiprtc
// compiles the source for the GPU, in some tenths of a second. Threads get their numbers from
// compiler built-ins, so no header is needed. It has been compiled for gfx906 to gfx1030; it has
// not been run on a real GPU yet.
#include "detect/gpu_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    // Eight chains of multiply-adds per thread; the result is written only if it is negative, which
    // it never is.
    "extern \"C\" __attribute__((global)) void sonde_compute(float *out, unsigned rounds)\n"
    "{\n"
    "    float c[8];\n"
    "    for (int k = 0; k < 8; k++)\n"
    "        c[k] = __builtin_amdgcn_workitem_id_x() + k * 0.999999f;\n"
    "    for (unsigned i = 0; i < rounds; i++)\n"
    "        for (int k = 0; k < 8; k++)\n"
    "            c[k] = __builtin_fmaf(c[k], 0.999999f, 0.001f);\n"
    "    float sum = c[0] + c[1] + c[2] + c[3] + c[4] + c[5] + c[6] + c[7];\n"
    "    if (sum < 0)\n"
    "        *out = sum;\n"
    "}\n"
    // All threads together read `vectors` of 16 bytes; neighbouring threads read neighbouring
    // vectors. A group has 256 threads.
    "typedef float sonde_vector __attribute__((ext_vector_type(4)));\n"
    "extern \"C\" __attribute__((global)) void sonde_memory(const sonde_vector *data, unsigned "
    "long long vectors, "
    "float *out)\n"
    "{\n"
    "    float sum = 0;\n"
    "    unsigned long long i = __builtin_amdgcn_workgroup_id_x() * 256ull + "
    "__builtin_amdgcn_workitem_id_x();\n"
    "    for (; i < vectors; i += __builtin_amdgcn_grid_size_x())\n"
    "        sum += data[i].x + data[i].y + data[i].z + data[i].w;\n"
    "    if (sum < 0)\n"
    "        *out = sum;\n"
    "}\n";

#define HIPRTC_FUNCTIONS(F)                                                                     \
    F(create, "hiprtcCreateProgram",                                                            \
      (void **program, const char *source, const char *name, int header_count,                  \
       const char **headers, const char **header_names))                                        \
    F(compile, "hiprtcCompileProgram", (void *program, int option_count, const char **options)) \
    F(code_size, "hiprtcGetCodeSize", (void *program, size_t *size))                            \
    F(code, "hiprtcGetCode", (void *program, char *code))                                       \
    F(destroy, "hiprtcDestroyProgram", (void **program))

struct hiprtc {
#define HIPRTC_MEMBER(name, symbol, parameters) int(*name) parameters;
    HIPRTC_FUNCTIONS(HIPRTC_MEMBER)
#undef HIPRTC_MEMBER
};

static int open_compiler(struct hiprtc *c, struct error *e)
{
    static const char *const names[GPU_LIBRARY_NAMES_MAX] = {"libhiprtc.so.7", "libhiprtc.so.6",
                                                             "libhiprtc.so.5", "libhiprtc.so",
                                                             "/opt/rocm/lib/libhiprtc.so"};
    void *library = gpu_library_open(names);
    if (!library)
        return error_set(e, -ENOENT, "there is no libhiprtc (ROCm's compiler at run time)");
#define HIPRTC_FIND(name, symbol, parameters)                            \
    {                                                                    \
        void *found = dlsym(library, symbol);                            \
        if (!found)                                                      \
            return error_set(e, -ENOSYS, "libhiprtc has no %s", symbol); \
        memcpy(&c->name, &found, sizeof found);                          \
    }
    HIPRTC_FUNCTIONS(HIPRTC_FIND)
#undef HIPRTC_FIND
    return 0;
}

static int compile(const struct hiprtc *c, void *program, char **code, struct error *e)
{
    const char *options[] = {"-O3"};
    size_t size = 0;
    int result = c->compile(program, 1, options); // for the current context's GPU
    if (result == 0)
        result = c->code_size(program, &size);
    if (result != 0)
        return error_set(e, -EIO, "the work cannot be compiled (hiprtc error %d)", result);
    *code = malloc(size ? size : 1);
    if (!*code)
        return error_set(e, -ENOMEM, "no memory");
    result = c->code(program, *code);
    if (result == 0)
        return 0;
    free(*code);
    return error_set(e, -EIO, "the compiled work cannot be had (hiprtc error %d)", result);
}

static int make_work(const char **work, char **allocated, struct error *e)
{
    struct hiprtc c = {0};
    void *program;
    int status = open_compiler(&c, e);
    if (status < 0)
        return status;
    int result = c.create(&program, text, "sonde", 0, NULL, NULL);
    if (result != 0)
        return error_set(e, -EIO, "hiprtc takes no program (error %d)", result);
    status = compile(&c, program, allocated, e);
    c.destroy(&program);
    if (status == 0)
        *work = *allocated;
    return status;
}

const struct gpu_make gpu_make_hip = {
    .libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
                  "/opt/rocm/lib/libamdhip64.so"},
    .hip = true,
    .multiprocessors = 63, // hipDeviceAttributeMultiprocessorCount
    .uuid_is_text = true,
    // of 8 multiply-adds a thread: 128 cycles a round and compute unit (64 lanes), 1.5 ms at 1.7
    // GHz
    .rounds = 20000,
    .memory_bytes = (size_t)1 << 30, // an MI300X has a cache of 256 MiB
    .make_work = make_work,
};
