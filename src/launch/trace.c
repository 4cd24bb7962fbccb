#include "launch/trace.h"

#include "base/log.h"
#include "base/str.h"
#include "launch/installation.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { PROGRAM_HEADERS_MAX = 128 };

const struct trace_library trace_libraries[TRACE_LIBRARIES] = {
    {"io", "libsonde_io.so", "files: calls, bytes, time"},
    {"mpi", "libsonde_mpi.so", "MPI: calls, bytes, time"},
};

static const struct trace_library *library_of(struct str name)
{
    for (size_t i = 0; i < TRACE_LIBRARIES; i++)
        if (str_eq(name, str_of(trace_libraries[i].name)))
            return &trace_libraries[i];
    return NULL;
}

int trace_check(const char *list, struct error *e)
{
    struct str rest = str_of(list);
    while (rest.data) {
        struct str name = str_trim(str_cut(&rest, ','));
        if (library_of(name))
            continue;
        struct buf known = {0};
        for (size_t i = 0; i < TRACE_LIBRARIES; i++)
            buf_printf(&known, "%s%s", i ? ", " : "", trace_libraries[i].name);
        buf_add_char(&known, 0);
        int shown = (int)(name.size < 60 ? name.size : 60);
        error_set(e, -EINVAL, "--trace: '%.*s' cannot be traced; known are %s", shown, name.data,
                  known.data ? known.data : "");
        buf_free(&known);
        return -EINVAL;
    }
    return 0;
}

// LD_PRELOAD separates its entries with these characters, and cannot quote them.
static bool can_be_preloaded(const char *path)
{
    return access(path, R_OK) == 0 && !path[strcspn(path, ": \t\n")];
}

bool trace_find(const struct trace_library *library, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    installation_find(INSTALLATION_TRACE, folder);
    int size = snprintf(path, PATH_MAX, "%s/%s", folder, library->file);
    if (folder[0] && size < PATH_MAX)
        return can_be_preloaded(path);
    path[0] = 0;
    return false;
}

// ---- programs that the dynamic linker does not load libraries into

static int open_program(const char *name)
{
    if (strchr(name, '/'))
        return open(name, O_RDONLY | O_CLOEXEC);
    struct str path = str_of(getenv("PATH"));
    while (path.data) {
        struct str folder = str_cut(&path, ':');
        char file[PATH_MAX];
        int n = snprintf(file, sizeof file, "%.*s/%s", STR_ARG(folder), name);
        if (n > 0 && n < (int)sizeof file && access(file, X_OK) == 0)
            return open(file, O_RDONLY | O_CLOEXEC);
    }
    return -1;
}

// A 64-bit ELF file without an interpreter: the kernel starts it without the dynamic linker.
static bool is_static(int fd)
{
    Elf64_Ehdr header;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (unsigned i = 0; i < header.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(header.e_phoff + i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part || part.p_type == PT_INTERP)
            return false;
    }
    return true;
}

// A program with other rights than ours (set-user-ID, set-group-ID, capabilities): the dynamic
// linker ignores LD_PRELOAD for it.
static bool has_other_rights(int fd)
{
    struct stat info;
    char capabilities[64];
    if (fstat(fd, &info) != 0)
        return false;
    return ((info.st_mode & S_ISUID) && info.st_uid != geteuid()) ||
           ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP) && info.st_gid != getegid()) ||
           (geteuid() != 0 &&
            fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0);
}

void trace_warn(const char *list, char *const *command)
{
    struct str rest = str_of(list);
    while (rest.data) {
        const struct trace_library *library = library_of(str_trim(str_cut(&rest, ',')));
        char path[PATH_MAX];
        if (library && !trace_find(library, path))
            log_warning("--trace %s is not available: %s; the command runs without it",
                        library->name,
                        access(path, R_OK) == 0
                            ? "the path of its library has a blank or a colon"
                            : "its library is not installed (sonde doctor shows where it belongs)");
    }
    int fd = list ? open_program(command[0]) : -1;
    if (fd < 0)
        return;
    const char *why = has_other_rights(fd) ? "runs with other rights"
                      : is_static(fd)      ? "is linked statically"
                                           : NULL;
    close(fd);
    if (why)
        log_warning("%s %s, so --trace %s records nothing of it; programs that it starts are "
                    "traced",
                    command[0], why, list);
}

void trace_set(const char *list, struct command_environment *env)
{
    struct str rest = str_of(list);
    struct buf preload = {0};
    const char *own = getenv("LD_PRELOAD");
    size_t added = 0;
    buf_add_str(&preload, str_of(own));
    while (rest.data) {
        const struct trace_library *library = library_of(str_trim(str_cut(&rest, ',')));
        char path[PATH_MAX];
        if (!library || !trace_find(library, path) ||
            (preload.size && memmem(preload.data, preload.size, path, strlen(path))))
            continue;
        buf_printf(&preload, "%s%s", preload.size ? ":" : "", path);
        added++;
    }
    if (added && !preload.failed)
        command_set(env, "LD_PRELOAD", "%.*s", STR_ARG(buf_str(&preload)));
    buf_free(&preload);
}
