// launches kernel COUNT: the processor time of recording a kernel of a GPU, in ns: what sonde does
// with CUPTI's record, and the stand-in for CUPTI that writes it. Without the library, makes no
// calls.
#include "../../tests/trace/cupti_library.h"
#include "measure.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct cupti_library *gpu; // NULL: without the library
static double at = 1;

static void launches(int count)
{
    static const char name[] =
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIf"
        "EESt5arrayIPcLm1EEEEviT0_T1_";
    for (int i = 0; i < count; i++) {
        __asm__ volatile("" ::: "memory"); // or the compiler removes the loop
        if (gpu)
            gpu->kernel(name, 0, at, at + 1e-6);
        at += 2e-6;
    }
}

int main(int count, char **arguments)
{
    const char *file = getenv("CUDA_INJECTION64_PATH"), *cupti = getenv("SONDE_CUPTI");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (count != 3 || (file && (!initialize || initialize() != 1)))
        return 2;
    library = file && cupti ? dlopen(cupti, RTLD_NOW | RTLD_NOLOAD) : NULL;
    gpu = library ? dlsym(library, "cupti_library") : NULL;
    if (file && !gpu)
        return 2;
    measure(launches, atoi(arguments[2]));
    return 0;
}
