#include "launch/trace.h"

#include "base/log.h"
#include "base/str.h"

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

// A variable of the environment that lists files to load.
struct trace_variable {
    const char *name, *old_name; // old_name: of older programs; may be NULL
    char separator;              // 0: it names one file only
    const char *separators;      // characters that no path in it can have
    bool user_first;             // the user's own entries stay in front
};

static const struct trace_variable
    preload = {"LD_PRELOAD", NULL, ':', ": \t\n", true},
    // The runtime loads the first library that accepts.
    tool_libraries = {"OMP_TOOL_LIBRARIES", NULL, ':', ":", true},
    // Kokkos loads only the first one. Versions before 3.7 read the old name.
    kokkos_tools = {"KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY", ';', ";", true},
    // NCCL loads one library only.
    profiler_plugin = {"NCCL_PROFILER_PLUGIN", NULL, 0, "", true},
    // CUDA loads one library only.
    cuda_injection = {"CUDA_INJECTION64_PATH", NULL, 0, "", true},
    // NVTX loads one library only.
    injection = {"NVTX_INJECTION64_PATH", NULL, 0, "", true},
    // Python runs only the first sitecustomize that it finds, and ours runs the next one.
    python_path = {"PYTHONPATH", NULL, ':', ":", false};
static const struct trace_variable *const variables[] = {
    &preload,        &tool_libraries, &kokkos_tools, &profiler_plugin,
    &cuda_injection, &injection,      &python_path};

const struct tracer tracers[TRACERS] = {
    {"io", INSTALLATION_TRACE, "libsonde_io.so", "files: calls, bytes, time", &preload},
    {"mpi", INSTALLATION_TRACE, "libsonde_mpi.so", "MPI: calls, bytes, time", &preload},
    {"omp", INSTALLATION_TRACE, "libsonde_omp.so", "OpenMP: regions, waiting", &tool_libraries},
    {"kokkos", INSTALLATION_TRACE, "libsonde_kokkos.so", "Kokkos: kernels, regions, memory",
     &kokkos_tools},
    {"cuda", INSTALLATION_TRACE, "libsonde_cuda.so", "CUDA: kernels, copies, waits",
     &cuda_injection},
    {"nccl", INSTALLATION_TRACE, "libsonde_nccl.so", "NCCL: collectives of GPUs", &profiler_plugin},
    {"nvtx", INSTALLATION_TRACE, "libsonde_nvtx.so", "NVTX: ranges, marks", &injection},
    {"roctx", INSTALLATION_TRACE, "libsonde_roctx.so", "ROCTX: ranges, marks", &preload},
    {"python", INSTALLATION_PYTHON, "sonde/_trace/hook",
     "Python: functions, imports, garbage collections", &python_path},
};

static const struct tracer *tracer_of(struct str name)
{
    for (size_t i = 0; i < TRACERS; i++)
        if (str_eq(name, str_of(tracers[i].name)))
            return &tracers[i];
    return NULL;
}

int trace_check(const char *list, struct error *e)
{
    struct str rest = str_of(list);
    while (rest.data) {
        struct str name = str_trim(str_cut(&rest, ','));
        if (tracer_of(name))
            continue;
        struct buf known = {0};
        for (size_t i = 0; i < TRACERS; i++)
            buf_printf(&known, "%s%s", i ? ", " : "", tracers[i].name);
        buf_add_char(&known, 0);
        int shown = (int)(name.size < 60 ? name.size : 60);
        error_set(e, -EINVAL, "--trace: '%.*s' cannot be traced; known are %s", shown, name.data,
                  known.data ? known.data : "");
        buf_free(&known);
        return -EINVAL;
    }
    return 0;
}

bool trace_find(const struct tracer *tracer, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    installation_find(tracer->part, folder);
    int size = snprintf(path, PATH_MAX, "%s/%s", folder, tracer->path);
    if (folder[0] && size < PATH_MAX)
        return access(path, R_OK) == 0 && !path[strcspn(path, tracer->variable->separators)];
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

static void warn_if_unavailable(const struct tracer *tracer)
{
    char path[PATH_MAX];
    bool found = trace_find(tracer, path);
    const char *own = getenv(tracer->variable->name);
    if (found && !tracer->variable->separator && own && own[0] && strcmp(own, path) != 0)
        log_warning("--trace %s is not used: %s is set already, and names one library only",
                    tracer->name, tracer->variable->name);
    if (found)
        return;
    bool exists = access(path, R_OK) == 0;
    log_warning("--trace %s is not available: %s; the command runs without it", tracer->name,
                !exists ? "it is not installed (sonde doctor shows where it belongs)"
                : tracer->variable == &preload ? "the path of its library has a blank or a colon"
                                               : "its path has a character that separates paths");
}

void trace_warn(const char *list, char *const *command)
{
    struct str rest = str_of(list);
    bool preloads = false;
    while (rest.data) {
        const struct tracer *tracer = tracer_of(str_trim(str_cut(&rest, ',')));
        if (!tracer)
            continue;
        warn_if_unavailable(tracer);
        preloads |= tracer->variable == &preload;
    }
    int fd = preloads ? open_program(command[0]) : -1;
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

static void add_path(struct buf *paths, char separator, struct str path)
{
    if (path.size && paths->size)
        buf_add_char(paths, separator);
    buf_printf(paths, "%.*s", STR_ARG(path));
}

static void set_variable(const struct trace_variable *variable, const char *name, const char *list,
                         struct command_environment *env)
{
    struct str rest = str_of(list), own = str_of(getenv(name));
    struct buf paths = {0};
    size_t added = 0;
    if (own.size && !variable->separator)
        return;
    if (variable->user_first)
        add_path(&paths, variable->separator, own);
    while (rest.data) {
        const struct tracer *tracer = tracer_of(str_trim(str_cut(&rest, ',')));
        char path[PATH_MAX];
        if (!tracer || tracer->variable != variable || !trace_find(tracer, path) ||
            str_find(own, str_of(path)) >= 0 || str_find(buf_str(&paths), str_of(path)) >= 0)
            continue;
        add_path(&paths, variable->separator, str_of(path));
        added++;
    }
    if (!variable->user_first)
        add_path(&paths, variable->separator, own);
    if (added && !paths.failed)
        command_set(env, name, "%.*s", STR_ARG(buf_str(&paths)));
    buf_free(&paths);
}

void trace_set(const char *list, const char *python_functions, struct command_environment *env)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        set_variable(variables[i], variables[i]->name, list, env);
        if (variables[i]->old_name)
            set_variable(variables[i], variables[i]->old_name, list, env);
    }
    if (list && python_functions)
        command_set(env, "SONDE_TRACE_PYTHON", "%s", python_functions);
}
