// convert.h - between Python's objects and what C takes. Internal to the extensions `sonde._emit`,
// `sonde._dask`, `sonde._client` and `sonde._detect`.
//
// Only the limited API of CPython 3.9 is used: one binary serves every later version.
#ifndef SONDE_PYTHON_CONVERT_H
#define SONDE_PYTHON_CONVERT_H

#include <Python.h>

#include "sonde.h"

#include <stdbool.h>

enum {
    TAGS_MAX = 64, // that are handed on; libsonde takes 16 and counts the rest
    TEXTS_MAX = 3 + 2 * TAGS_MAX,
    NAME_BYTES_MAX = 255, // of a metric; sonde.h
    KEY_BYTES_MAX = 128,  // of a tag
};

static inline PyObject *new_ref(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

// UTF-8 texts of Python objects, alive until texts_free.
struct texts {
    PyObject *held[TEXTS_MAX];
    size_t count;
};

// The object as text (str() of an object that is no text), or NULL with an exception. Surrogates
// that stand for undecodable bytes become those bytes again; a NUL ends the text, as it does for C.
const char *texts_add(struct texts *t, PyObject *object);

// The same for a name: of a text that cannot be one, the name that stands for it
// (base/storable_name.h).
const char *texts_add_name(struct texts *t, PyObject *object, size_t bytes_max);

void texts_free(struct texts *t);

// A mapping's items (NULL or None: none) as tags. The count, or -1 with an exception.
int texts_add_tags(struct texts *t, PyObject *mapping, struct sonde_tag tags[TAGS_MAX]);

// A value to emit: a number, or what float() takes. False: nothing to emit: None, or no number (a
// RuntimeWarning says which metric; telemetry is no reason to end a program) or an exception that
// is set.
bool value_of(PyObject *object, PyObject *name, double *value);

// A new object of a type of ours, all zero behind its head; NULL with an exception. And its end,
// when all that it holds has been given back.
void *object_new(PyTypeObject *type);
void object_free(PyObject *self);

// The module has the object under that name, too (PyModule_AddObjectRef is younger than 3.9). -1
// with an exception, also where `object` is NULL, which has one.
int module_add(PyObject *module, const char *name, PyObject *object);

// A type made for the module, which has it under the last part of its name. NULL with an exception.
PyTypeObject *module_add_type(PyObject *module, PyType_Spec *spec);

#endif
