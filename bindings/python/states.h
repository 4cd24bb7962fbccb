// states.h - the names that Dask gives to the states of a task, and what they mean to sonde.
// Internal to the extension `sonde._dask`.
#ifndef SONDE_PYTHON_STATES_H
#define SONDE_PYTHON_STATES_H

#include <Python.h>

enum state {
    // On a worker.
    STATE_RUNS = 1 << 0,
    STATE_RUNS_ON = 1 << 1, // it runs, or it did and goes on, though nobody wants it any more
    STATE_ERROR = 1 << 2,
    // On the scheduler.
    STATE_PROCESSING = 1 << 3, // a worker has it
    STATE_DONE = 1 << 4,       // who asked for it need not wait any more
    STATE_MEMORY = 1 << 5,
    STATE_FORGOTTEN = 1 << 6,
};

// Once, before the first state_bits(). 0 or -1 with an exception.
int states_init(void);

// The arguments of a plugin's transition(key, start, finish, …): the key, borrowed. NULL with an
// exception where they are fewer.
PyObject *state_key(PyObject *args);

// The bits of enum state for a state's name; 0 if sonde has no use for that state, or if there is
// no such state. Never an exception.
unsigned state_bits(PyObject *name);

#endif
