// cupti_library.h - a library that stands in for CUPTI, and lets a test say what the GPU does.
#ifndef SONDE_TRACE_CUPTI_LIBRARY_H
#define SONDE_TRACE_CUPTI_LIBRARY_H

#include "trace/cupti.h"

// Adds a record, as long as CUPTI 13's. The times count from the start of the library. If sonde
// gives no buffer, the record is lost.
struct cupti_library {
    void (*kernel)(const char *name, uint32_t gpu, double start_s, double end_s);
    void (*copy)(uint32_t kind, uint8_t copy_kind, uint8_t from, uint8_t to, uint64_t bytes,
                 double start_s, double end_s);
    void (*wait)(uint32_t wait_kind, double start_s, double end_s);
    void (*other)(void);        // a record of another kind
    void (*lose)(size_t count); // CUPTI had no room for so many records
};

__attribute__((visibility("default"))) extern const struct cupti_library cupti_library;

#endif
