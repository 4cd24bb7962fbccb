// kernels kernel|region COUNT: the processor time of the calls that Kokkos makes for a kernel or a
// region, in ns. Loads the tools library as Kokkos does; without one, makes no calls.
#include "measure.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void (*init)(int, uint64_t, uint32_t, void *);
static void (*begin_kernel)(const char *, uint32_t, uint64_t *);
static void (*end_kernel)(uint64_t);
static void (*push)(const char *);
static void (*pop)(void);

static void kernels(int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t id = 0;
        if (begin_kernel)
            begin_kernel("a kernel with a name of usual length", 0, &id);
        __asm__ volatile("" ::: "memory"); // or the compiler removes the loop
        if (end_kernel)
            end_kernel(id);
    }
}

static void regions(int count)
{
    for (int i = 0; i < count; i++) {
        if (push)
            push("region");
        __asm__ volatile("" ::: "memory");
        if (pop)
            pop();
    }
}

int main(int count, char **arguments)
{
    const char *file = getenv("KOKKOS_TOOLS_LIBS");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (count != 3 || (file && !library))
        return 2;
    if (library) {
        *(void **)&init = dlsym(library, "kokkosp_init_library");
        *(void **)&begin_kernel = dlsym(library, "kokkosp_begin_parallel_for");
        *(void **)&end_kernel = dlsym(library, "kokkosp_end_parallel_for");
        *(void **)&push = dlsym(library, "kokkosp_push_profile_region");
        *(void **)&pop = dlsym(library, "kokkosp_pop_profile_region");
        init(0, 20211015, 0, NULL);
    }
    void (*loop)(int) = strcmp(arguments[1], "region") == 0 ? regions : kernels;
    measure(loop, atoi(arguments[2]));
    return 0;
}
