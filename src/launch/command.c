#include "launch/command.h"

#include "base/str.h"
#include "launch/codes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void command_set(struct command_environment *env, const char *name, const char *format, ...)
{
    if (env->count == COMMAND_VARIABLES_MAX)
        return;
    char *value;
    va_list args;
    va_start(args, format);
    if (vasprintf(&value, format, args) >= 0) {
        env->set[env->count].name = name;
        env->set[env->count].value = value;
        env->count++;
    }
    va_end(args);
}

void command_environment_free(struct command_environment *env)
{
    for (size_t i = 0; i < env->count; i++)
        free(env->set[i].value);
    env->count = 0;
}

static bool is_python_file(const char *name)
{
    struct stat info;
    return str_ends(str_of(name), STR(".py")) && stat(name, &info) == 0 && S_ISREG(info.st_mode);
}

char *command_python(void)
{
    const char *environment = getenv("VIRTUAL_ENV");
    char *path = NULL;
    if (environment && *environment && asprintf(&path, "%s/bin/python3", environment) >= 0) {
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return strdup("python3");
}

char **command_arguments(char *const *command)
{
    size_t count = 0, at = 0;
    while (command[count])
        count++;
    char **arguments = calloc(count + 2, sizeof *arguments);
    if (!arguments)
        return NULL;
    bool failed = false;
    if (is_python_file(command[0]))
        failed |= !(arguments[at++] = command_python());
    for (size_t i = 0; i < count; i++)
        failed |= !(arguments[at++] = strdup(command[i]));
    if (failed) {
        for (size_t i = 0; i < at; i++)
            free(arguments[i]);
        free(arguments);
        return NULL;
    }
    return arguments;
}

void command_arguments_free(char **arguments)
{
    for (size_t i = 0; arguments && arguments[i]; i++)
        free(arguments[i]);
    free(arguments);
}

static void set_environment(const struct command_environment *env)
{
    for (size_t i = 0; i < env->count; i++)
        setenv(env->set[i].name, env->set[i].value, 1);
}

// Whether a folder of PATH holds a file of that name.
static bool in_path(const char *name)
{
    struct str path = str_of(getenv("PATH"));
    while (path.data) {
        struct str folder = str_cut(&path, ':');
        char file[PATH_MAX];
        int n = snprintf(file, sizeof file, "%.*s/%s", STR_ARG(folder), name);
        if (n > 0 && n < (int)sizeof file && access(file, F_OK) == 0)
            return true;
    }
    return false;
}

static int cannot_run(const char *name, int code, struct error *e)
{
    // If a folder of PATH cannot be searched, exec fails with EACCES although no program was found.
    if (code == EACCES && !strchr(name, '/') && !in_path(name))
        code = ENOENT;
    if (code == ENOENT && strchr(name, '/'))
        return error_set(e, -code, "cannot run %s: the file or its interpreter does not exist",
                         name);
    if (code == ENOENT)
        return error_set(e, -code, "cannot run %s: there is no such command in PATH", name);
    return error_set(e, -code, "cannot run %s: %s", name, strerror(code));
}

int command_become(char *const *command, const struct command_environment *env, struct error *e)
{
    char **arguments = command_arguments(command);
    char *const *words = arguments ? arguments : command; // without memory, the command's own words
    set_environment(env);
    execvp(words[0], words);
    int status = cannot_run(words[0], errno, e);
    command_arguments_free(arguments);
    return status;
}

// If exec fails, the child writes the reason into a pipe. The pipe closes on exec, so reading
// nothing means success.
pid_t command_start(char *const *command, const struct command_environment *env,
                    const struct signals *signals, bool *unstarted, struct error *e)
{
    int failure[2];
    *unstarted = true;
    char **arguments = command_arguments(command);
    if (!arguments)
        return error_set(e, -ENOMEM, "out of memory");
    if (pipe2(failure, O_CLOEXEC) < 0) {
        command_arguments_free(arguments);
        return error_set(e, -errno, "cannot make a pipe for %s: %s", command[0], strerror(errno));
    }
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self) // the launcher died before the kernel knew of the death signal
            _exit(LAUNCH_SIGNALLED + SIGTERM);
        signals_restore(signals);
        set_environment(env);
        execvp(arguments[0], arguments);
        int code = errno;
        ssize_t written = write(failure[1], &code, sizeof code);
        (void)written;
        _exit(LAUNCH_NOT_FOUND);
    }
    int code = pid < 0 ? errno : 0;
    *unstarted = pid < 0;
    close(failure[1]);
    if (pid > 0) {
        ssize_t n;
        do
            n = read(failure[0], &code, sizeof code);
        while (n < 0 && errno == EINTR);
        if (n == (ssize_t)sizeof code)
            waitpid(pid, NULL, 0);
        else
            code = 0;
    }
    close(failure[0]);
    if (*unstarted)
        pid = error_set(e, -code, "cannot make a process for %s: %s", command[0], strerror(code));
    else if (code != 0)
        pid = cannot_run(arguments[0], code, e);
    command_arguments_free(arguments);
    return pid;
}

int command_failure_code(int status)
{
    return status == -ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
}

int command_exit_code(int status)
{
    return WIFSIGNALED(status) ? LAUNCH_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}
