// arguments.h - receives the arguments of a call in an array, without a tuple for them, and the
// names of the keyword arguments in a tuple (PEP 590). Internal to `sonde._emit`.
//
// A call of a handle that is off costs little more than the call itself: it allocates nothing for
// its arguments, and checks the handle before it looks at any of them.
//
// The limited API of CPython 3.9 does not declare this protocol. But 3.9 implements it in the form
// that later versions made part of the stable ABI and keep: METH_FASTCALL (stable since 3.10), and
// for types the flag, the member __vectorcalloffset__ and the signature (since 3.12). So this
// header declares them itself.
#ifndef SONDE_PYTHON_ARGUMENTS_H
#define SONDE_PYTHON_ARGUMENTS_H

#include "convert.h"

#include <structmember.h>

enum {
    FAST_POSITIONAL = 0x80,      // METH_FASTCALL: positional_fn
    FAST = 0x80 | METH_KEYWORDS, // METH_FASTCALL | METH_KEYWORDS: fast_fn
    FAST_TYPE = 1 << 11,         // Py_TPFLAGS_HAVE_VECTORCALL: objects begin with a struct callable
};
typedef PyObject *positional_fn(PyObject *self, PyObject *const *args, Py_ssize_t given);
typedef PyObject *fast_fn(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names);

#define FAST_METHOD(function) (PyCFunction)(void (*)(void))(function)

// A callable object, whose function is `call`. Its type has FAST_TYPE, callable_members as
// Py_tp_members and callable_call as Py_tp_call.
struct callable {
    PyObject ob_base;
    PyObject *(*call)(PyObject *self, PyObject *const *args, size_t given_and_flag,
                      PyObject *names);
};
extern PyMemberDef callable_members[];

// The highest bit says that the caller's array has a spare slot in front, which this code does not
// need.
static inline Py_ssize_t given_of(size_t given_and_flag)
{
    return (Py_ssize_t)(given_and_flag & (SIZE_MAX >> 1));
}

// Implements type(object).__call__, for callers that pass a tuple and a dictionary all the same.
PyObject *callable_call(PyObject *self, PyObject *args, PyObject *keywords);

struct signature {
    const char *function;
    const char *const *names;
    Py_ssize_t required, count;
    // count entries, NULL at first: the interned names as programs pass them; most calls match by
    // pointer, without a comparison
    PyObject **interned;
};

// Sorts the arguments, by position or by name, into out[0..count): borrowed, NULL where the caller
// passed none. Returns false with a TypeError.
bool arguments_take(const struct signature *s, PyObject *const *args, Py_ssize_t given,
                    PyObject *names, PyObject **out);

#endif
