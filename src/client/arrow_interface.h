// arrow_interface.h - the structs of Arrow's C data and stream interfaces, as
// https://arrow.apache.org/docs/format/CDataInterface.html defines them.
//
// The producer of a struct sets `release`; the consumer calls it once. To move a struct, copy it
// and clear `release` in the old place.
#ifndef SONDE_CLIENT_ARROW_INTERFACE_H
#define SONDE_CLIENT_ARROW_INTERFACE_H

#include <stdint.h>

enum { ARROW_NULLABLE = 2 }; // a flag of a schema

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    // after the last array, `release` of *out is NULL
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif
