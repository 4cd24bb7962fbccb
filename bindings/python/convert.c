#include "convert.h"

#include "base/storable_name.h"

// Returns the storable form of a name as a new bytes object; NULL with an exception.
static PyObject *name_storable(const char *text, size_t bytes_max)
{
    struct buf name = {0};
    storable_name_add(&name, str_of(text), bytes_max);
    PyObject *bytes = name.failed ? PyErr_NoMemory()
                                  : PyBytes_FromStringAndSize(name.data, (Py_ssize_t)name.size);
    buf_free(&name);
    return bytes;
}

const char *texts_add(struct texts *t, PyObject *object)
{
    PyObject *held = PyUnicode_Check(object) ? new_ref(object) : PyObject_Str(object);
    if (!held)
        return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(held, NULL);
    if (!text) { // it has surrogates
        PyErr_Clear();
        PyObject *bytes = PyUnicode_AsEncodedString(held, "utf-8", "surrogateescape");
        Py_DECREF(held);
        if (!bytes)
            return NULL;
        held = bytes;
        text = PyBytes_AsString(bytes);
    }
    if (t->count == TEXTS_MAX) {
        Py_DECREF(held);
        PyErr_SetString(PyExc_ValueError, "too many tags");
        return NULL;
    }
    t->held[t->count++] = held;
    return text;
}

const char *texts_add_name(struct texts *t, PyObject *object, size_t bytes_max)
{
    const char *text = texts_add(t, object);
    if (!text || storable_name_is(str_of(text), bytes_max))
        return text;
    PyObject *name = name_storable(text, bytes_max);
    if (!name)
        return NULL;
    Py_DECREF(t->held[t->count - 1]); // keep the text without replacement
    t->held[t->count - 1] = name;
    return PyBytes_AsString(name);
}

void texts_free(struct texts *t)
{
    while (t->count)
        Py_DECREF(t->held[--t->count]);
}

bool texts_add_tag(struct texts *t, PyObject *key, PyObject *value, struct sonde_tag *tag)
{
    tag->key = texts_add_name(t, key, KEY_BYTES_MAX);
    tag->value = tag->key ? texts_add(t, value) : NULL;
    return tag->value != NULL;
}

int texts_add_tags(struct texts *t, PyObject *mapping, struct sonde_tag tags[TAGS_MAX])
{
    if (!mapping || mapping == Py_None)
        return 0;
    PyObject *items = PyMapping_Items(mapping);
    if (!items)
        return -1;
    Py_ssize_t count = PyList_Size(items);
    if (count > TAGS_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd tags: at most 16 are recorded", count);
        count = -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(items, i), *key = NULL, *value = NULL;
        bool pair = PyTuple_Check(item) && PyTuple_Size(item) == 2;
        if (pair) {
            key = PyTuple_GetItem(item, 0);
            value = PyTuple_GetItem(item, 1);
        } else {
            PyErr_SetString(PyExc_TypeError, "tags must be a mapping of names to values");
        }
        if (!pair || !texts_add_tag(t, key, value, &tags[i]))
            count = -1;
    }
    Py_DECREF(items);
    return (int)count;
}

bool value_of(PyObject *object, PyObject *name, double *value)
{
    *value = PyFloat_AsDouble(object);
    if (*value != -1.0 || !PyErr_Occurred())
        return true;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return false; // KeyboardInterrupt and the like
    PyErr_Clear();
    if (object != Py_None)
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "sonde: %U is given %R, which is not a number; it is left out", name,
                         (PyObject *)Py_TYPE(object));
    return false;
}

void *object_new(PyTypeObject *type)
{
    return PyType_GenericAlloc(type, 0);
}

void object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

int module_add(PyObject *module, const char *name, PyObject *object)
{
    Py_XINCREF(object);
    if (object &&
        PyModule_AddObject(module, name, object) == 0) // steals the reference only on success
        return 0;
    Py_XDECREF(object);
    return -1;
}

PyTypeObject *module_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && module_add(module, strrchr(spec->name, '.') + 1, type) != 0)
        Py_CLEAR(type);
    return (PyTypeObject *)(void *)type;
}
