// command.h - starts the user's command: its arguments, its environment, its exit code.
#ifndef SONDE_LAUNCH_COMMAND_H
#define SONDE_LAUNCH_COMMAND_H

#include "base/error.h"
#include "launch/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { COMMAND_VARIABLES_MAX = 20 };

// Variables that the command gets in addition to the launcher's own.
struct command_environment {
    struct {
        const char *name;
        char *value;
    } set[COMMAND_VARIABLES_MAX];
    size_t count;
};
void command_set(struct command_environment *env, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void command_environment_free(struct command_environment *env);

// Returns the Python that runs programs: python3 of $VIRTUAL_ENV, else of $PATH. The caller frees
// the text; NULL without memory.
char *command_python(void);

// Returns the arguments for exec: the command's words, with command_python() before a .py file.
// Free the array with command_arguments_free; NULL without memory.
char **command_arguments(char *const *command);
void command_arguments_free(char **arguments);

// Starts the command in the launcher's process group, so that the terminal's signals reach it; it
// gets SIGTERM if the launcher dies. Returns the pid, or a negative errno with a message. After a
// failure, *unstarted is true if fork failed, false if exec did.
pid_t command_start(char *const *command, const struct command_environment *env,
                    const struct signals *signals, bool *unstarted, struct error *e);

// Replaces this process with the command. Returns only on failure: a negative errno with a message.
int command_become(char *const *command, const struct command_environment *env, struct error *e);

// Returns 127 if the command does not exist, 126 if it cannot be executed.
int command_failure_code(int status);

// Returns the exit code in a wait status, or 128 + the number of the signal.
int command_exit_code(int status);

#endif
