// client.h - the types that the files of the extension `sonde._client` share.
#ifndef SONDE_PYTHON_CLIENT_H
#define SONDE_PYTHON_CLIENT_H

#include "convert.h"

#include "sonde_client.h"

// client_connection.c: a running job or a recording.
struct client_connection {
    PyObject ob_base;
    struct sonde_client *client; // NULL: closed
    int pending;                 // requests; changed with the interpreter's lock held
    bool closed;
};

// client_result.c: the answer to a query.
struct client_result {
    PyObject ob_base;
    struct sonde_result *result;
};

// client_watch.c: new points of the series that a query selects.
struct client_watch {
    PyObject ob_base;
    struct sonde_watch *watch;
    struct client_connection *connection; // a reference
    bool waiting;
};

// client_module.c makes the types from these.
extern PyType_Spec client_connection_spec, client_result_spec, client_watch_spec;
extern PyTypeObject *client_result_type, *client_watch_type;

// Raises sonde.ClientError with the text and number of the error. Returns NULL.
PyObject *client_fail(const struct sonde_error *e);

// The constructor of a type whose objects only a Connection makes: raises TypeError.
PyObject *client_not_by_hand(PyTypeObject *type, PyObject *args, PyObject *keywords);

// Begins a request: releases the interpreter's lock. Returns false with an exception if the
// connection is closed.
bool client_begin(struct client_connection *c, PyThreadState **state);

// Ends a request. Returns true if there is a result to return; else an exception is set.
bool client_end(struct client_connection *c, PyThreadState *state, int rc,
                const struct sonde_error *e);

// Makes an object that owns the result; frees the result if it cannot. NULL with an exception.
PyObject *client_result_new(struct sonde_result *result);

// Returns the list of statistics, and the text that names the nodes that did not answer in time.
PyObject *client_stats_rows(const struct sonde_stats *s, const char *span);

// client_text converts a text of a recording; undecodable bytes become surrogates. client_tags
// makes a dictionary of tags. Both return NULL with an exception.
PyObject *client_text(const char *s);
PyObject *client_tags(const struct sonde_tag *tags, size_t count);

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

#endif
