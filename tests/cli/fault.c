// fault.c - runs a program and makes the n-th of its system calls of one kind fail, or the n-th and
// all later ones.
//
//   fault KIND N once|on SCOPE REPORT PROGRAM [ARGUMENTS…]
//
// KIND is a row of the table below. N counts from 1; 0 only counts. SCOPE is `first` (the process
// that PROGRAM begins as) or `all` (its children, too); both only count calls while the
// process executes PROGRAM itself, so commands that it starts are not affected. REPORT receives the
// number of calls. The exit code is the program's, 128 + its signal, or 77 if the kernel does not
// support this.
//
// Method: a seccomp filter reports the calls (SECCOMP_RET_USER_NOTIF), and this program answers
// each with an error or lets it continue. Calls of the dynamic loader do not count, because a
// program that fails to load does not test its own code.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd // older headers
#define SYS_pidfd_getfd 438
#endif

enum { SKIPPED = 77, SIGNALLED = 128, FILTER_MAX = 64, PATH_BYTES = 4096 };

static const struct kind {
    const char *name;
    int error;
    int calls[24]; // shorter lists end with 0; no kind has read (0 on x86-64)
} kinds[] = {
    {"files",
     ENOSPC,
     {
         SYS_openat,
         SYS_mkdirat,
         SYS_renameat2,
         SYS_unlinkat,
         SYS_ftruncate,
         SYS_fallocate,
         SYS_fsync,
         SYS_fdatasync,
         SYS_pwrite64,
         SYS_flock,
         SYS_bind,
         SYS_chdir,
#ifdef SYS_mkdir
         SYS_mkdir,
         SYS_rename,
         SYS_unlink,
         SYS_rmdir,
#endif
#ifdef SYS_renameat
         SYS_renameat,
#endif
     }},
    {"descriptors",
     EMFILE,
     {SYS_openat, SYS_socket, SYS_socketpair, SYS_pipe2, SYS_signalfd4, SYS_eventfd2,
      SYS_epoll_create1, SYS_timerfd_create, SYS_memfd_create, SYS_dup, SYS_accept4}},
    {"processes",
     EAGAIN,
     {
         SYS_clone,
         SYS_clone3,
#ifdef SYS_fork
         SYS_fork,
         SYS_vfork,
#endif
     }},
    {"memory", ENOMEM, {SYS_mmap, SYS_brk, SYS_mremap}},
    {"other",
     EIO,
     {
         SYS_getrandom,
         SYS_getcwd,
         SYS_readlinkat,
         SYS_fstat,
         SYS_newfstatat,
         SYS_getdents64,
         SYS_connect,
         SYS_listen,
         SYS_prctl,
         SYS_epoll_ctl,
         SYS_sendmsg,
         SYS_recvmsg,
#ifdef SYS_readlink
         SYS_readlink,
#endif
     }},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    fprintf(stderr, "fault: no such kind: %s\n", name);
    exit(2);
}

static int install_filter(const struct kind *kind)
{
    struct sock_filter code[FILTER_MAX];
    unsigned short count = 0;
    code[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof kind->calls / sizeof kind->calls[0] && kind->calls[i]; i++) {
        code[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kind->calls[i], 0, 1);
        code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

// The listener's descriptor has the same number in the parent's copy. The child cannot send it
// (sending may be one of the calls), so it writes the number into a pipe and waits until the parent
// has taken the descriptor.
static _Noreturn void become(const struct kind *kind, int say, int wait_for, char **argv)
{
    int listener = install_filter(kind);
    ssize_t n = write(say, &listener, sizeof listener);
    char go;
    if (n != (ssize_t)sizeof listener || listener < 0 || read(wait_for, &go, 1) != 1)
        _exit(SKIPPED);
    close(listener);
    close(say);
    close(wait_for);
    execv(argv[0], argv);
    _exit(SKIPPED);
}

static bool executes(pid_t pid, const char *program)
{
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return false;
    path[n] = 0;
    return strcmp(path, program) == 0;
}

// True if the dynamic loader made the call.
static bool in_loader(pid_t pid, uint64_t address)
{
    char path[64], line[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    bool is = false;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx", &from, &to) == 2 && address >= from && address < to) {
            is = strstr(line, "/ld-") || strstr(line, "/ld64") || strstr(line, "/ld.so");
            break;
        }
    }
    if (maps)
        fclose(maps);
    return is;
}

// brk() returns no error: without memory it returns the unchanged break. The break is the heap's
// end or, before a heap exists, the place where it would begin (the 47th field of stat). Returns 0
// if it is unknown.
static int64_t break_of(pid_t pid)
{
    enum { START_BRK = 47, COMM = 2 };
    char path[64], line[PATH_BYTES];
    unsigned long long from, to, end = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "[heap]") && sscanf(line, "%llx-%llx", &from, &to) == 2)
            end = to;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = end ? NULL : fopen(path, "re");
    if (file && fgets(line, sizeof line, file) && strrchr(line, ')')) {
        char *at = strrchr(line, ')'), *save = NULL, *word = strtok_r(at + 1, " ", &save);
        for (int field = COMM + 1; word && field < START_BRK; field++)
            word = strtok_r(NULL, " ", &save);
        end = word ? strtoull(word, NULL, 10) : 0;
    }
    if (file)
        fclose(file);
    return (int64_t)end;
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "usage: fault KIND N once|on first|all REPORT PROGRAM [ARGUMENTS...]\n");
        return 2;
    }
    const struct kind *kind = kind_of(argv[1]);
    long wanted = strtol(argv[2], NULL, 10), seen = 0;
    bool goes_on = strcmp(argv[3], "on") == 0, all = strcmp(argv[4], "all") == 0;
    char *program = realpath(argv[6], NULL);
    int said[2], go[2];
    if (!program || pipe2(said, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
        return SKIPPED;
    pid_t pid = fork();
    if (pid == 0)
        become(kind, said[1], go[0], argv + 6);
    int listener = -1;
    if (pid < 0 || read(said[0], &listener, sizeof listener) != (ssize_t)sizeof listener ||
        listener < 0)
        return SKIPPED;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, listener, 0);
    if (fd < 0 || write(go[1], "g", 1) != 1) {
        kill(pid, SIGKILL);
        return SKIPPED;
    }
    // Runs until the last process under the filter has ended (POLLHUP).
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    while (poll(&polled, 1, -1) > 0 && !(polled.revents & POLLHUP)) {
        struct seccomp_notif call = {0};
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
            continue;
        struct seccomp_notif_resp answer = {.id = call.id,
                                            .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        pid_t caller = (pid_t)call.pid;
        bool counts = (all || caller == pid) && executes(caller, program) &&
                      !in_loader(caller, call.data.instruction_pointer);
        int64_t unmoved = 0;
        if (counts && call.data.nr == SYS_brk)
            counts = call.data.args[0] && (unmoved = break_of(caller)) > 0;
        seen += counts;
        if (counts && wanted && (seen == wanted || (goes_on && seen > wanted)))
            answer = (struct seccomp_notif_resp){
                .id = call.id, .val = unmoved, .error = unmoved ? 0 : -kind->error};
        ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    FILE *report = fopen(argv[5], "we");
    if (report) {
        fprintf(report, "%ld\n", seen);
        fclose(report);
    }
    free(program);
    return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}
