// convert.h - conversions between Python's objects and C's types. Internal to the extensions
// `sonde._emit`, `sonde._dask`, `sonde._client` and `sonde._detect`.
//
// Uses only the limited API of CPython 3.9: one binary serves every later version.
#ifndef SONDE_PYTHON_CONVERT_H
#define SONDE_PYTHON_CONVERT_H

#include <Python.h>

#include "sonde.h"

#include <stdbool.h>

enum {
    TAGS_MAX = 64, // passed on to libsonde, which takes 16 and counts the rest as dropped
    TEXTS_MAX = 3 + 2 * TAGS_MAX,
    NAME_BYTES_MAX = 255, // of a metric's name; the limit of sonde.h
    KEY_BYTES_MAX = 128,  // of a tag's key
};

static inline PyObject *new_ref(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

// Stable since 3.10; the limited API of 3.9 does not declare it, although 3.9 exports it. The text
// lives as long as the object.
extern const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size);

// UTF-8 texts of Python objects, alive until texts_free: texts whose UTF-8 form Python keeps, or
// bytes.
struct texts {
    PyObject *held[TEXTS_MAX];
    size_t count;
};

// The object as text (str() of an object that is not a text), or NULL with an exception. Surrogates
// that stand for undecodable bytes become those bytes again. A NUL ends the text, as everywhere in
// C.
const char *texts_add(struct texts *t, PyObject *object);

// Like texts_add, for a name. A text that is not a valid name is replaced by its storable form
// (base/storable_name.h).
const char *texts_add_name(struct texts *t, PyObject *object, size_t bytes_max);

void texts_free(struct texts *t);

// Converts a tag. Returns false with an exception.
bool texts_add_tag(struct texts *t, PyObject *key, PyObject *value, struct sonde_tag *tag);

// Converts a mapping's items to tags; NULL or None is an empty mapping. Returns their count, or -1
// with an exception.
int texts_add_tags(struct texts *t, PyObject *mapping, struct sonde_tag tags[TAGS_MAX]);

// Converts a value to emit: a number, or an object that float() accepts. Returns false if there is
// nothing to emit: for None, for any other object (a RuntimeWarning names the metric, because
// telemetry must not end a program), and with an exception that is set.
bool value_of(PyObject *object, PyObject *name, double *value);

// Allocates an object of one of our types, zeroed after its head; NULL with an exception.
// object_free frees it after the caller has released all that it holds.
void *object_new(PyTypeObject *type);
void object_free(PyObject *self);

// Adds the object to the module under that name (PyModule_AddObjectRef is younger than 3.9).
// Returns -1 with an exception; also if `object` is NULL, whose exception is already set.
int module_add(PyObject *module, const char *name, PyObject *object);

// Makes a type and adds it to the module under the last part of its name. NULL with an exception.
PyTypeObject *module_add_type(PyObject *module, PyType_Spec *spec);

#endif
