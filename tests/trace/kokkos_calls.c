// Calls Kokkos' tools library as Kokkos does, and as it does not. Arguments: odd, or threads
// NUMBER ROUNDS.
#include "trace/kokkos.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static unsigned long rounds;

// The calls need no type beyond the header's.
#define CALL(name, ...) ((__typeof__(name) *)dlsym(library, #name))(__VA_ARGS__)

static void odd(void)
{
    char longest[1001] = "";
    memset(longest, 'x', 199);
    for (size_t i = 199; i + 1 < sizeof longest; i += 3)
        memcpy(longest + i, "€", i + 3 < sizeof longest ? 3 : 0);
    uint64_t id = 0, ids[1500];
    CALL(kokkosp_end_parallel_for, 0);
    CALL(kokkosp_end_parallel_for, UINT64_MAX);
    CALL(kokkosp_end_deep_copy);
    CALL(kokkosp_pop_profile_region);
    CALL(kokkosp_begin_parallel_for, "no id", 0, NULL);
    CALL(kokkosp_begin_parallel_for, NULL, 0, &id);
    CALL(kokkosp_end_fence, id); // of another kind
    CALL(kokkosp_end_parallel_for, id);
    CALL(kokkosp_end_parallel_for, id); // again
    CALL(kokkosp_begin_parallel_scan, longest, 0, &id);
    CALL(kokkosp_end_parallel_reduce, id);
    for (size_t i = 0; i < 1500; i++) // more than can run at the same time
        CALL(kokkosp_begin_parallel_reduce, "many", 0, &ids[i]);
    for (size_t i = 0; i < 1500; i++)
        CALL(kokkosp_end_parallel_reduce, ids[i]);
    for (size_t i = 0; i < 100; i++) // deeper than is recorded
        CALL(kokkosp_push_profile_region, "deep");
    for (size_t i = 0; i < 101; i++)
        CALL(kokkosp_pop_profile_region);
    struct kokkos_space full, host = {"Host"};
    memset(full.name, 'f', sizeof full.name);
    CALL(kokkosp_allocate_data, full, NULL, NULL, 5);
    CALL(kokkosp_begin_deep_copy, full, NULL, NULL, host, NULL, NULL, 7);
    CALL(kokkosp_end_deep_copy);
    CALL(kokkosp_end_deep_copy);
    CALL(kokkosp_begin_fence, "end", 0, &id);
    CALL(kokkosp_end_fence, id);
}

static void *work(void *unused)
{
    char name[32];
    for (unsigned long i = 0; i < rounds; i++) {
        uint64_t id = 0;
        snprintf(name, sizeof name, "kernel %lu", i % 300);
        CALL(kokkosp_push_profile_region, "region");
        CALL(kokkosp_begin_parallel_for, name, 0, &id);
        CALL(kokkosp_end_parallel_for, id);
        CALL(kokkosp_pop_profile_region);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const char *file = getenv("KOKKOS_TOOLS_LIBS");
    library = file ? dlopen(file, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (argc < 2 || !library) {
        fprintf(stderr, "no library: %s\n", dlerror());
        return 2;
    }
    struct kokkos_settings settings = {.requires_global_fencing = true};
    CALL(kokkosp_request_tool_settings, 1, &settings);
    CALL(kokkosp_init_library, 0, 20211015, 0, NULL);
    printf("%d\n", settings.requires_global_fencing);
    if (strcmp(argv[1], "odd") == 0) {
        odd();
    } else {
        pthread_t threads[64];
        int count = atoi(argv[2]);
        rounds = strtoul(argv[3], NULL, 10);
        for (int i = 0; i < count && i < 64; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < count && i < 64; i++)
            pthread_join(threads[i], NULL);
    }
    CALL(kokkosp_finalize_library);
    return 0;
}
