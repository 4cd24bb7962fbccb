// emitter.h - the functions of the extension `sonde._emit` that the extension `sonde._dask` calls.
//
// libsonde keeps one state per process: its rings, its connection, its metrics. It is linked into
// `_emit` alone; a second copy in `_dask` would connect to the agent a second time and know none of
// the metrics. `_emit` therefore exports its functions in a capsule.
#ifndef SONDE_PYTHON_EMITTER_H
#define SONDE_PYTHON_EMITTER_H

#include "convert.h"

// The capsule's name, which PyCapsule_Import() also uses as its path: sonde._emit.__emitter__.
#define EMITTER_ATTRIBUTE "__emitter__"
#define EMITTER_NAME "sonde._emit." EMITTER_ATTRIBUTE

struct emitter {
    // size of this struct, so that extensions of different versions of sonde reject each other
    size_t size;

    // libsonde (sonde.h)
    struct sonde_span (*span_open)(const char *name, const struct sonde_tag *tags, size_t tag_count,
                                   const struct sonde_span *parent);
    void (*span_close)(const struct sonde_span *span, const char *name,
                       const struct sonde_tag *tags, size_t tag_count);
    void (*put_row_at)(sonde_handle group, const double *values, int64_t time_ns);

    PyObject *(*span_as_parent)(const struct sonde_span *span);                   // span.h
    bool (*group_of)(PyObject *object, Py_ssize_t members, sonde_handle *handle); // metric.h
};

// In `_dask`: the functions of this process's `_emit`, set when the module is loaded.
extern const struct emitter *emitter;

#endif
