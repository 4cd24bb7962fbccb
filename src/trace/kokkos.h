// kokkos.h - the part of Kokkos Tools' interface that sonde implements.
//
// The library is built without Kokkos, so the declarations are here. Names and arguments are those
// of the interface that Kokkos 3 and 4 call. The library names of KOKKOS_TOOLS_LIBS (Kokkos 3.7 and
// newer) or KOKKOS_PROFILE_LIBRARY (older ones) load it. Every function may be called from any
// thread, in any order, with any number that it did not give out: an odd call is not recorded.
//
// The cost of a kernel: two readings of the clock (20 ns), a hash of its name, two additions to
// cells of libsonde. A process has at most 256 names of each kind; further names are "other".
// Memory: 256 names of up to 200 bytes for each of five kinds that occur, in all below 300 KiB.
#ifndef SONDE_TRACE_KOKKOS_H
#define SONDE_TRACE_KOKKOS_H

#include <stdbool.h>
#include <stdint.h>

#define KOKKOS_API __attribute__((visibility("default")))

struct kokkos_space {
    char name[64];
};

struct kokkos_settings {
    bool requires_global_fencing;
    bool padding[255];
};

KOKKOS_API void kokkosp_request_tool_settings(uint32_t count, struct kokkos_settings *settings);
KOKKOS_API void kokkosp_init_library(int sequence, uint64_t version, uint32_t devices, void *info);
KOKKOS_API void kokkosp_finalize_library(void);

KOKKOS_API void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id);
KOKKOS_API void kokkosp_end_parallel_for(uint64_t id);
KOKKOS_API void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id);
KOKKOS_API void kokkosp_end_parallel_reduce(uint64_t id);
KOKKOS_API void kokkosp_begin_parallel_scan(const char *name, uint32_t device, uint64_t *id);
KOKKOS_API void kokkosp_end_parallel_scan(uint64_t id);
KOKKOS_API void kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id);
KOKKOS_API void kokkosp_end_fence(uint64_t id);

// Regions nest, within a thread.
KOKKOS_API void kokkosp_push_profile_region(const char *name);
KOKKOS_API void kokkosp_pop_profile_region(void);

KOKKOS_API void kokkosp_allocate_data(struct kokkos_space space, const char *label,
                                      const void *data, uint64_t size);
KOKKOS_API void kokkosp_deallocate_data(struct kokkos_space space, const char *label,
                                        const void *data, uint64_t size);
KOKKOS_API void kokkosp_begin_deep_copy(struct kokkos_space to, const char *to_label,
                                        const void *to_data, struct kokkos_space from,
                                        const char *from_label, const void *from_data,
                                        uint64_t size);
KOKKOS_API void kokkosp_end_deep_copy(void);

#endif
