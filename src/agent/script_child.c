#include "agent/script_child.h"

#include "base/forked.h"
#include "base/full_io.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool set_by(const struct script_spec *spec, const char *entry)
{
    for (size_t i = 0; i < spec->variable_count; i++) {
        size_t size = (size_t)(strchr(spec->variables[i], '=') - spec->variables[i]) + 1;
        if (strncmp(entry, spec->variables[i], size) == 0)
            return true;
    }
    return false;
}

static bool make_environment(struct script_child *c, const struct script_spec *spec)
{
    size_t count = 0;
    while (environ[count])
        count++;
    c->environment = calloc(count + spec->variable_count + 1, sizeof *c->environment);
    for (size_t i = 0; c->environment && i < count; i++)
        if (!set_by(spec, environ[i]))
            c->environment[c->own++] = environ[i];
    for (size_t i = 0; c->environment && i < spec->variable_count; i++)
        if (!(c->environment[c->own + i] = strdup(spec->variables[i])))
            return false;
    return c->environment != NULL;
}

// Each run reads the input from its beginning.
static int make_input(struct str text)
{
    int fd = memfd_create("sonde-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && full_write(fd, text, 0) != 0) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
}

bool script_child_make(struct script_child *c, const struct script_spec *spec)
{
    *c = (struct script_child){.input = -1};
    c->command = strndup(spec->command.data, spec->command.size);
    c->folder = spec->folder ? strdup(spec->folder) : NULL;
    if (!c->command || (spec->folder && !c->folder) || !make_environment(c, spec))
        return false;
    if (spec->input.size)
        c->input = make_input(spec->input);
    return c->input >= 0 || !spec->input.size;
}

void script_child_free(struct script_child *c)
{
    if (c->input >= 0)
        close(c->input);
    for (size_t i = c->own; c->environment && c->environment[i]; i++)
        free(c->environment[i]);
    free(c->environment);
    free(c->command);
    free(c->folder);
}

// From here on, only call functions that are allowed between fork and exec.
void script_child_become(const struct script_child *c, int out, int err, pid_t parent)
{
    setpgid(0, 0);
    forked_begin(parent, SIGKILL);
    int in = c->input >= 0 ? c->input : open("/dev/null", O_RDONLY);
    if (in < 0 || lseek(in, 0, SEEK_SET) < 0 || dup2(in, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(126);
    if (c->folder && chdir(c->folder) != 0) {
        static const char words[] = "cannot go to its folder\n";
        ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
        (void)written;
        _exit(126);
    }
    execle("/bin/sh", "sh", "-c", c->command, (char *)NULL, c->environment);
    _exit(127);
}
