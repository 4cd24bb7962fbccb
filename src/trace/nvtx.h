// nvtx.h - the part of NVTX' injection interface, version 3, that sonde implements.
//
// The library is built without NVTX, so the declarations are here; the order, the types and the
// numbers are the interface. Each library of a program that contains NVTX loads the library that
// NVTX_INJECTION64_PATH names at its first call, and calls InitializeInjectionNvtx2 with a function
// that returns its tables. We set the functions in them that we implement; the others stay empty,
// and NVTX calls nothing.
//
// Memory: that of ranges.h, and at most 4,096 registered texts of at most 200 bytes.
#ifndef SONDE_TRACE_NVTX_H
#define SONDE_TRACE_NVTX_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define NVTX_API __attribute__((visibility("default")))

enum { NVTX_TABLE_CALLBACKS = 1 };

enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_DOMAINS = 5 };

// Places in the table of NVTX_MODULE_CORE: A with a text, W with wide characters.
enum {
    NVTX_MARK = 1,
    NVTX_MARK_A,
    NVTX_MARK_W,
    NVTX_RANGE_START,
    NVTX_RANGE_START_A,
    NVTX_RANGE_START_W,
    NVTX_RANGE_END,
    NVTX_RANGE_PUSH,
    NVTX_RANGE_PUSH_A,
    NVTX_RANGE_PUSH_W,
    NVTX_RANGE_POP,
};

// Places in the table of NVTX_MODULE_DOMAINS.
enum {
    NVTX_DOMAIN_MARK = 1,
    NVTX_DOMAIN_RANGE_START = 2,
    NVTX_DOMAIN_RANGE_END = 3,
    NVTX_DOMAIN_RANGE_PUSH = 4,
    NVTX_DOMAIN_RANGE_POP = 5,
    NVTX_DOMAIN_REGISTER_A = 10,
    NVTX_DOMAIN_REGISTER_W = 11,
    NVTX_DOMAIN_CREATE_A = 12,
    NVTX_DOMAIN_CREATE_W = 13,
};

enum { NVTX_TEXT_ASCII = 1, NVTX_TEXT_WIDE = 2, NVTX_TEXT_REGISTERED = 3 };

struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t text_type;
    union {
        const char *ascii;
        const wchar_t *wide;
        const void *registered;
    } text;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct nvtx_attributes) == 48, "as in NVTX");

typedef void (*nvtx_function)(void);

// A table has pointers to the variables through which NVTX calls the functions.
struct nvtx_callbacks {
    size_t size;
    // Returns 1, or 0 if the program's NVTX has no such module.
    int (*get_table)(int module, nvtx_function ***table, unsigned *size);
};

typedef const void *nvtx_get_table(uint32_t number);

// Returns 1 if sonde records the ranges, 0 if NVTX is to call nothing.
NVTX_API int InitializeInjectionNvtx2(nvtx_get_table *get_table);

#endif
