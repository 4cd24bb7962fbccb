#include "arguments.h"

PyMemberDef callable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct callable, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyObject *callable_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    Py_ssize_t given = PyTuple_Size(args), named = keywords ? PyDict_Size(keywords) : 0, at = 0;
    PyObject **all = PyMem_Malloc((size_t)(given + named + 1) * sizeof(PyObject *)), *key, *value,
             *result = NULL;
    PyObject *names = named ? PyTuple_New(named) : NULL;
    if (all && (names || !named)) {
        for (Py_ssize_t i = 0; i < given; i++)
            all[i] = PyTuple_GetItem(args, i);
        for (Py_ssize_t i = 0; i < named && PyDict_Next(keywords, &at, &key, &value); i++) {
            PyTuple_SetItem(names, i, new_ref(key));
            all[given + i] = value;
        }
        result = ((struct callable *)(void *)self)->call(self, all, (size_t)given, names);
    } else if (!all) {
        PyErr_NoMemory();
    }
    Py_XDECREF(names);
    PyMem_Free(all);
    return result;
}

// Returns s->count for an unknown parameter.
static Py_ssize_t place_of(const struct signature *s, PyObject *name)
{
    Py_ssize_t i;
    for (i = 0; i < s->count; i++)
        if (s->interned[i] == name)
            return i;
    for (i = 0; i < s->count && PyUnicode_CompareWithASCIIString(name, s->names[i]) != 0; i++)
        continue;
    if (i < s->count && !s->interned[i] &&
        !(s->interned[i] = PyUnicode_InternFromString(s->names[i])))
        PyErr_Clear(); // interning failed: the next call compares the text again
    return i;
}

bool arguments_take(const struct signature *s, PyObject *const *args, Py_ssize_t given,
                    PyObject *names, PyObject **out)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (given > s->count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments (%zd given)", s->function,
                     s->count, given);
        return false;
    }
    for (Py_ssize_t i = 0; i < s->count; i++)
        out[i] = i < given ? args[i] : NULL;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        Py_ssize_t i = place_of(s, name);
        if (i == s->count || out[i]) {
            PyErr_Format(PyExc_TypeError,
                         i == s->count ? "%s() has no argument %R" : "%s() is given %R twice",
                         s->function, name);
            return false;
        }
        out[i] = args[given + k];
    }
    for (Py_ssize_t i = 0; i < s->required; i++) {
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", s->function, s->names[i]);
            return false;
        }
    }
    return true;
}
