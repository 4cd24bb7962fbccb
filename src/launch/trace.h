// trace.h - `sonde run --trace`: observes the command's programs from inside.
//
// Each tracer is a file that the programs load by themselves, because a variable of their
// environment names it: the dynamic linker reads LD_PRELOAD, OpenMP's runtime OMP_TOOL_LIBRARIES,
// Kokkos KOKKOS_TOOLS_LIBS, and so on. Tracers record through libsonde (docs/trace.md). The
// libraries are in the folder `sonde` below that of libsonde, Python's tracer is in its package. In
// the build tree they are in src/trace and bindings/python.
#ifndef SONDE_LAUNCH_TRACE_H
#define SONDE_LAUNCH_TRACE_H

#include "base/error.h"
#include "launch/command.h"
#include "launch/installation.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { TRACERS = 9 };

struct tracer {
    const char *name; // its name in the list of --trace
    enum installation_part part;
    const char *path; // below the part's folder: what the variable names
    const char *what; // what it observes
    const struct trace_variable *variable;
};
extern const struct tracer tracers[TRACERS];

// Returns 0, or -EINVAL with a message that lists the known names. NULL is a valid list.
int trace_check(const char *list, struct error *e);

// Finds the tracer's file beside this program. Returns false if it is not installed, or its
// variable cannot hold the path; `path` is then the place where it should be.
bool trace_find(const struct tracer *tracer, char path[PATH_MAX]);

// Prints a warning line for each tracer of the list that is not available, and for a command into
// which the dynamic linker does not load them.
void trace_warn(const char *list, char *const *command);

// Adds the list's tracers to the user's own values of their variables, and the patterns of Python's
// functions (NULL: its default). Does nothing if the list is NULL.
void trace_set(const char *list, const char *python_functions, struct command_environment *env);

#endif
