// trace.h - `sonde run --trace`: libraries that observe the command's programs from inside.
//
// Each library is an interposer: LD_PRELOAD names it, so the dynamic linker loads it into every
// program of the job. Its counts are recorded through libsonde (docs/trace.md). The libraries are
// in the folder `sonde` below that of libsonde; in the build tree they are in src/trace.
#ifndef SONDE_LAUNCH_TRACE_H
#define SONDE_LAUNCH_TRACE_H

#include "base/error.h"
#include "launch/command.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { TRACE_LIBRARIES = 2 };

struct trace_library {
    const char *name; // its name in the list of --trace
    const char *file;
    const char *what; // what it observes
};
extern const struct trace_library trace_libraries[TRACE_LIBRARIES];

// Returns 0, or -EINVAL with a message that lists the known names. NULL is a valid list.
int trace_check(const char *list, struct error *e);

// Finds the library beside this program. Returns false if it is not installed, or LD_PRELOAD cannot
// hold its path; `path` is then the place where it should be.
bool trace_find(const struct trace_library *library, char path[PATH_MAX]);

// Prints a warning line for each library of the list that is not available, and for a command into
// which the dynamic linker does not load them.
void trace_warn(const char *list, char *const *command);

// Appends the list's libraries to the user's LD_PRELOAD. Does nothing if the list is NULL.
void trace_set(const char *list, struct command_environment *env);

#endif
