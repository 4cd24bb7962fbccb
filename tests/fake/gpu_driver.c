// gpu_driver.c - a fake of NVIDIA's driver library (libcuda.so.1) for the probe or, with FAKE_HIP,
// of AMD's (libamdhip64.so.6) and its compiler (libhiprtc.so.6). The environment controls it:
//
//   FAKE_GPU_DEVICES   number of devices (2)
//   FAKE_GPU_MS        milliseconds of a timed run, a number for each device, separated by commas;
//                      the last number is for all further devices (2)
// FAKE_GPU_TIMES     factors for the times of the first runs, separated by commas; later runs have
// 1 FAKE_GPU_FREE_MIB  memory that can be allocated (1024); with 0, even a context is refused
// FAKE_GPU_FAILS     a function and the error that it returns, as in cuCtxCreate_v2=46
// FAKE_GPU_HANGS     the device whose work never ends FAKE_GPU_DIES      the device whose work
// kills the process FAKE_GPU_COMPILES  0: the compiler finds an error FAKE_GPU_WORK      a file
// that receives the loaded work
//
// It fails in all cases in which the real driver fails: no PTX or compiled code, an unknown
// function, parameters that do not match the work, events that were not recorded, a process that
// was forked after its parent had used the driver. If memory is still allocated when a context is
// destroyed, it reports that on standard error. Like CUDA, it numbers devices in another order than
// other libraries, unless CUDA_DEVICE_ORDER forbids that.
#include "detect/gpu_driver.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INVALID = 1, NOT_FOUND = 500 };

#ifdef FAKE_HIP
#define cuInit hipInit
#define cuDeviceGetCount hipGetDeviceCount
#define cuDeviceGet hipDeviceGet
#define cuDeviceGetName hipDeviceGetName
#define cuDeviceGetUuid hipDeviceGetUuid
#define cuDeviceGetAttribute hipDeviceGetAttribute
#define cuCtxCreate_v2 hipCtxCreate
#define cuCtxDestroy_v2 hipCtxDestroy
#define cuModuleLoadData hipModuleLoadData
#define cuModuleGetFunction hipModuleGetFunction
#define cuMemAlloc_v2 hipMalloc
#define cuMemFree_v2 hipFree
#define cuMemsetD32_v2 hipMemsetD32
#define cuLaunchKernel hipModuleLaunchKernel
#define cuEventCreate hipEventCreateWithFlags
#define cuEventRecord hipEventRecord
#define cuEventSynchronize hipEventSynchronize
#define cuEventElapsedTime hipEventElapsedTime
#define cuGetErrorName hipDrvGetErrorName
static const char begins[] = "compiled ", entry_format[] = "void %s(";
static const int multiprocessors = 63;
#else
static const char begins[] = ".version", entry_format[] = ".entry %s(";
static const int multiprocessors = 16;
#endif

#define PUBLIC __attribute__((visibility("default")))

static int current = -1; // the device of the context
static long free_mib;
static int allocated;       // number of allocated pieces of memory
static pid_t used_by;       // the process that uses the driver; 0 if none does
static unsigned timed_runs; // number of timed runs so far

// The time of an event is the number of launches before it. A timed run has at least one launch.
enum { EVENTS_MAX = 64, NEVER = -1 };

static struct event {
    int at; // NEVER if it was not recorded
    bool complete;
} events[EVENTS_MAX];
static int event_count, launches;

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// Returns the error with which `function` must fail, or success.
static int failure(const char *function)
{
    const char *text = getenv("FAKE_GPU_FAILS");
    size_t size = strlen(function);
    return text && strncmp(text, function, size) == 0 && text[size] == '=' ? atoi(text + size + 1)
                                                                           : GPU_SUCCESS;
}

// Returns the element of a list at this index. Behind the end of the list, it returns `otherwise`
// or, if that is 0, the last element.
static double of_list(const char *name, unsigned index, double first, double otherwise)
{
    const char *text = getenv(name);
    double value = first;
    for (unsigned i = 0; text && i <= index; i++) {
        value = atof(text);
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
        if (!text && i < index && otherwise != 0)
            value = otherwise;
    }
    return value;
}

PUBLIC int cuInit(unsigned flags)
{
    if (failure(__func__))
        return failure(__func__);
    if (used_by && used_by != getpid())
        return GPU_NOT_INITIALIZED;
    used_by = getpid();
    return flags ? INVALID : number("FAKE_GPU_DEVICES", 2) ? GPU_SUCCESS : GPU_NO_DEVICE;
}

PUBLIC int cuDeviceGetCount(int *count)
{
    if (failure(__func__))
        return failure(__func__);
    *count = (int)number("FAKE_GPU_DEVICES", 2);
    return GPU_SUCCESS;
}

PUBLIC int cuDeviceGet(int *device, int index)
{
    if (failure(__func__))
        return failure(__func__);
    int count = (int)number("FAKE_GPU_DEVICES", 2);
    const char *order = getenv("CUDA_DEVICE_ORDER");
    bool along_the_bus = multiprocessors == 63 || (order && strcmp(order, "PCI_BUS_ID") == 0);
    *device = along_the_bus ? index : count - 1 - index;
    return index < count ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuDeviceGetName(char *name, int size, int device)
{
    if (failure(__func__))
        return failure(__func__);
    snprintf(name, (size_t)size, "Fake %d", device);
    return GPU_SUCCESS;
}

PUBLIC int cuDeviceGetUuid(unsigned char uuid[GPU_UUID_BYTES], int device)
{
    if (failure(__func__))
        return failure(__func__);
    for (int i = 0; i < GPU_UUID_BYTES; i++)
        // AMD's ids are text.
        uuid[i] = (unsigned char)(multiprocessors == 63 ? 'a' + device : i * 16 + device);
    return GPU_SUCCESS;
}

PUBLIC int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (failure(__func__))
        return failure(__func__);
    (void)device;
    *value = 132;
    return attribute == multiprocessors ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    if (failure(__func__))
        return failure(__func__);
    free_mib = number("FAKE_GPU_FREE_MIB", 1024);
    if (!free_mib)
        return GPU_OUT_OF_MEMORY;
    current = device;
    *context = &current;
    return flags ? INVALID : GPU_SUCCESS;
}

PUBLIC int cuCtxDestroy_v2(void *context)
{
    if (failure(__func__))
        return failure(__func__);
    if (context != &current)
        return INVALID;
    if (allocated)
        fprintf(stderr, "fake: %d pieces of memory are still allocated\n", allocated);
    current = -1;
    return GPU_SUCCESS;
}

PUBLIC int cuModuleLoadData(void **module, const void *text)
{
    if (failure(__func__))
        return failure(__func__);
    const char *path = getenv("FAKE_GPU_WORK");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fputs(text, file);
        fclose(file);
    }
    *module = strdup(text);
    return current >= 0 && strncmp(text, begins, strlen(begins)) == 0 ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuModuleGetFunction(void **function, void *module, const char *name)
{
    if (failure(__func__))
        return failure(__func__);
    char entry[64];
    snprintf(entry, sizeof entry, entry_format, name);
    *function = strstr(module, entry);
    return *function ? GPU_SUCCESS : NOT_FOUND;
}

PUBLIC int cuMemAlloc_v2(gpu_memory *memory, size_t bytes)
{
    if (failure(__func__))
        return failure(__func__);
    long mib = (long)(bytes >> 20);
    if (current < 0 || mib > free_mib)
        return GPU_OUT_OF_MEMORY;
    free_mib -= mib;
    *memory = 0x1000;
    allocated++;
    return GPU_SUCCESS;
}

PUBLIC int cuMemFree_v2(gpu_memory memory)
{
    allocated--;
    if (failure(__func__))
        return failure(__func__);
    return memory && current >= 0 ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuMemsetD32_v2(gpu_memory memory, unsigned value, size_t count)
{
    if (failure(__func__))
        return failure(__func__);
    return memory && !value && count ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    if (failure(__func__))
        return failure(__func__);
    // The declaration of the function has its parameters: an address and a number, or an address, a
    // number and an address.
    const char *end = strchr(function, ')');
    int wanted = 1;
    for (const char *at = function; end && (at = strchr(at, ',')) && at < end; at++)
        wanted++;
    for (int i = 0; i < wanted; i++)
        if (!parameters[i])
            return INVALID;
    if (current < 0 || wanted < 2 || grid_x % 132 || grid_y != 1 || grid_z != 1 || !block_x ||
        block_y != 1 || block_z != 1 || shared_bytes || stream || extra)
        return INVALID;
    if (number("FAKE_GPU_HANGS", -1) == current)
        for (;;)
            pause();
    if (number("FAKE_GPU_DIES", -1) == current)
        raise(SIGKILL);
    launches++;
    return GPU_SUCCESS;
}

PUBLIC int cuEventCreate(void **event, unsigned flags)
{
    if (failure(__func__))
        return failure(__func__);
    if (event_count == EVENTS_MAX || (flags & ~(unsigned)GPU_EVENT_BLOCKING))
        return INVALID;
    events[event_count] = (struct event){.at = NEVER};
    *event = &events[event_count++];
    return GPU_SUCCESS;
}

PUBLIC int cuEventRecord(void *event, void *stream)
{
    if (failure(__func__))
        return failure(__func__);
    *(struct event *)event = (struct event){.at = launches};
    return stream ? INVALID : GPU_SUCCESS;
}

// Completes the event and all earlier ones.
PUBLIC int cuEventSynchronize(void *event)
{
    if (failure(__func__))
        return failure(__func__);
    int at = ((struct event *)event)->at;
    for (int i = 0; i < event_count; i++)
        events[i].complete = events[i].complete || (events[i].at != NEVER && events[i].at <= at);
    return at == NEVER ? INVALID : GPU_SUCCESS;
}

PUBLIC int cuEventElapsedTime(float *ms, void *from, void *to)
{
    if (failure(__func__))
        return failure(__func__);
    const struct event *a = from, *b = to;
    *ms = (float)(of_list("FAKE_GPU_MS", (unsigned)current, 2, 0) *
                  of_list("FAKE_GPU_TIMES", timed_runs++, 1, 1));
    return a->complete && b->complete && a->at < b->at ? GPU_SUCCESS : INVALID;
}

PUBLIC int cuGetErrorName(int error, const char **name)
{
    *name = error == GPU_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == GPU_NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
            : error == GPU_UNAVAILABLE     ? "CUDA_ERROR_DEVICE_UNAVAILABLE"
            : error == NOT_FOUND           ? "CUDA_ERROR_NOT_FOUND"
                                           : "CUDA_ERROR_INVALID_VALUE";
    return GPU_SUCCESS;
}

#ifdef FAKE_HIP
// The "compiled" code is a prefix and the source.
PUBLIC int hiprtcCreateProgram(void **program, const char *source, const char *name,
                               int header_count, const char **headers, const char **header_names)
{
    *program = strdup(source);
    return name && !header_count && !headers && !header_names ? GPU_SUCCESS : INVALID;
}

PUBLIC int hiprtcCompileProgram(void *program, int option_count, const char **options)
{
    return program && option_count == 1 && options[0] && number("FAKE_GPU_COMPILES", 1)
               ? GPU_SUCCESS
               : 6;
}

PUBLIC int hiprtcGetCodeSize(void *program, size_t *size)
{
    *size = strlen(begins) + strlen(program) + 1;
    return GPU_SUCCESS;
}

PUBLIC int hiprtcGetCode(void *program, char *code)
{
    strcpy(stpcpy(code, begins), program);
    return GPU_SUCCESS;
}

PUBLIC int hiprtcDestroyProgram(void **program)
{
    free(*program);
    *program = NULL;
    return GPU_SUCCESS;
}
#endif
