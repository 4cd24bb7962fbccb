#include "own_method.h"

// In the dictionary of the type.
struct finder {
    PyObject ob_base;
    PyObject *plain; // the type's method
    PyTypeObject *type;
    size_t offset;
    positional_fn *function;
};

static PyTypeObject *finder_type, *method_type;

static PyObject *call(PyObject *self, PyObject *const *args, size_t given_and_flag, PyObject *names)
{
    const struct own_method *m = (struct own_method *)(void *)self;
    if (names && PyTuple_Size(names))
        return PyErr_Format(PyExc_TypeError, "this method takes no keyword arguments");
    return m->function(m->object, args, given_of(given_and_flag));
}

// The last reference to the method is gone, and the object may end with it.
static void release(PyObject *self)
{
    struct own_method *m = (struct own_method *)(void *)self;
    PyObject *object = m->object;
    m->object = NULL;
    Py_DECREF(method_type);
    Py_DECREF(object);
}

static PyObject *find(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    const struct finder *f = (struct finder *)(void *)self;
    if (!object)
        return new_ref(f->plain);
    if (Py_TYPE(object) != f->type)
        return PyErr_Format(PyExc_TypeError, "%R is not a %R", object, (PyObject *)f->type);
    struct own_method *m = (struct own_method *)(void *)((char *)object + f->offset);
    if (m->object)
        return new_ref((PyObject *)m);
    PyObject *found = PyObject_Init((PyObject *)m, method_type);
    m->callable.call = call;
    m->object = new_ref(object);
    m->function = f->function;
    return found;
}

static void free_finder(PyObject *self)
{
    struct finder *f = (struct finder *)(void *)self;
    Py_CLEAR(f->plain);
    object_free(self);
}

static PyObject *made_by_type(PyTypeObject *own, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    return PyErr_Format(PyExc_TypeError, "%R: only a method of an object", (PyObject *)own);
}

static PyType_Slot finder_slots[] = {
    {Py_tp_new, made_by_type},
    {Py_tp_dealloc, free_finder},
    {Py_tp_descr_get, find},
    {0, NULL},
};

static PyType_Spec finder_spec = {"sonde._emit.MethodOfObject", sizeof(struct finder), 0,
                                  Py_TPFLAGS_DEFAULT, finder_slots};

static PyType_Slot method_slots[] = {
    {Py_tp_new, made_by_type},
    {Py_tp_dealloc, release},
    {Py_tp_call, callable_call},
    {Py_tp_members, callable_members},
    {0, NULL},
};

static PyType_Spec method_spec = {"sonde._emit.Method", sizeof(struct own_method), 0,
                                  Py_TPFLAGS_DEFAULT | FAST_TYPE, method_slots};

// No program needs the names of these types: no module has them. Returns false with an exception.
static bool make_types(void)
{
    if (!finder_type)
        finder_type = (PyTypeObject *)(void *)PyType_FromSpec(&finder_spec);
    if (!method_type)
        method_type = (PyTypeObject *)(void *)PyType_FromSpec(&method_spec);
    return finder_type && method_type;
}

int own_method_put(PyTypeObject *type, const char *name, size_t offset, positional_fn *function)
{
    struct finder *f = make_types() ? object_new(finder_type) : NULL;
    if (!f)
        return -1;
    f->plain = PyObject_GetAttrString((PyObject *)type, name);
    f->type = type;
    f->offset = offset;
    f->function = function;
    int rc = f->plain ? PyObject_SetAttrString((PyObject *)type, name, (PyObject *)f) : -1;
    Py_DECREF(f);
    return rc;
}
