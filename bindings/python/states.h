// states.h - Dask's names for the states of a task, as bits. Internal to the extension
// `sonde._dask`.
#ifndef SONDE_PYTHON_STATES_H
#define SONDE_PYTHON_STATES_H

#include <Python.h>

enum state {
    // States on a worker.
    STATE_RUNS = 1 << 0,
    STATE_RUNS_ON = 1 << 1, // executing, also if the scheduler has cancelled it meanwhile
    STATE_ERROR = 1 << 2,
    // States on the scheduler.
    STATE_PROCESSING = 1 << 3, // assigned to a worker
    STATE_DONE = 1 << 4,       // the client need not wait for the task any longer
    STATE_MEMORY = 1 << 5,
    STATE_FORGOTTEN = 1 << 6,
};

// Call once before the first state_bits(). Returns 0, or -1 with an exception.
int states_init(void);

// Returns the key from the arguments of a plugin's transition(key, start, finish, …), borrowed;
// NULL with an exception if arguments are missing.
PyObject *state_key(PyObject *args);

// Returns the bits of enum state for the name of a state; 0 for a state that sonde does not use,
// and for an unknown name. Never raises an exception.
unsigned state_bits(PyObject *name);

#endif
