// command.h - the user's command: what is executed for it, and with which environment.
#ifndef SONDE_LAUNCH_COMMAND_H
#define SONDE_LAUNCH_COMMAND_H

#include "base/error.h"
#include "launch/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { COMMAND_VARIABLES_MAX = 16 };

// What is set in the command's environment, beside what the launcher itself has.
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

// The arguments for exec: the command's own, with python3 (that of $VIRTUAL_ENV, else of $PATH) in
// front where it is a .py file. The array is freed with command_arguments_free; NULL: no memory.
char **command_arguments(char *const *command);
void command_arguments_free(char **arguments);

// Starts the command in the launcher's process group, so that the terminal's signals reach it; it
// gets SIGTERM if the launcher dies. Returns the pid, or a negative errno with words. *unstarted:
// the fork failed; otherwise the exec.
pid_t command_start(char *const *command, const struct command_environment *env,
                    const struct signals *signals, bool *unstarted, struct error *e);

// Becomes it. Returns only on failure, with a negative errno and words.
int command_become(char *const *command, const struct command_environment *env, struct error *e);

// 127 when it was not there, 126 when it cannot be executed.
int command_failure_code(int status);

// Of a wait status: the exit code, or 128 + the signal's number.
int command_exit_code(int status);

#endif
