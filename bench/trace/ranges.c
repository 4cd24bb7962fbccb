// ranges push|start COUNT: the processor time of the calls that NVTX makes for a range, in ns.
// Loads the library as NVTX does; without one, makes no calls.
#include "../../src/trace/nvtx.h"
#include "measure.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 16 };

static nvtx_function core[SIZE];
static nvtx_function *core_table[SIZE];

static int get_table(int module, nvtx_function ***table, unsigned *size)
{
    *table = core_table;
    *size = SIZE;
    return module == NVTX_MODULE_CORE;
}

static const struct nvtx_callbacks callbacks = {sizeof callbacks, get_table};

static const void *table_of(uint32_t number)
{
    return number == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static void push(int count)
{
    for (int i = 0; i < count; i++) {
        __asm__ volatile("" ::: "memory"); // or the compiler removes the loop
        if (!core[NVTX_RANGE_POP])
            continue;
        ((int (*)(const char *))core[NVTX_RANGE_PUSH_A])("range");
        ((int (*)(void))core[NVTX_RANGE_POP])();
    }
}

static void start(int count)
{
    for (int i = 0; i < count; i++) {
        __asm__ volatile("" ::: "memory");
        if (!core[NVTX_RANGE_END])
            continue;
        uint64_t id = ((uint64_t(*)(const char *))core[NVTX_RANGE_START_A])("range");
        ((void (*)(uint64_t))core[NVTX_RANGE_END])(id);
    }
}

int main(int count, char **arguments)
{
    const char *file = getenv("NVTX_INJECTION64_PATH");
    void *library = file ? dlopen(file, RTLD_LAZY) : NULL;
    if (count != 3 || (file && !library))
        return 2;
    for (unsigned i = 0; i < SIZE; i++)
        core_table[i] = &core[i];
    if (library) {
        int (*initialize)(nvtx_get_table *);
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
        initialize(table_of);
    }
    measure(strcmp(arguments[1], "start") == 0 ? start : push, atoi(arguments[2]));
    return 0;
}
