// own_method.h - a bound method that is part of its object. Internal to `sonde._emit`.
//
// CPython makes a bound method for each call of __enter__ and __exit__ by a `with` statement: an
// object for its garbage collector, which takes longer than many a call. Here the bound method is
// in the memory of its object, and holds the object as long as something holds the method.
#ifndef SONDE_PYTHON_OWN_METHOD_H
#define SONDE_PYTHON_OWN_METHOD_H

#include "arguments.h"

// All zero at first, and while nothing holds it.
struct own_method {
    struct callable callable;
    PyObject *object;
    positional_fn *function;
};

// Changes the method `name` of a type that has no subclasses: an object's method is the struct
// own_method at `offset` in the object, and calls `function`. The type's method stays as it is.
// Returns 0, or -1 with an exception.
int own_method_put(PyTypeObject *type, const char *name, size_t offset, positional_fn *function);

#endif
