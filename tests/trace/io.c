// io FOLDER WHAT: reads and writes files. test_io.py has the numbers of its calls and bytes. The
// program prints nothing, and checks that tracing does not change errno and results.
#include "../common/next_syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(good)                                                    \
    do {                                                               \
        if (!(good)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #good); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

enum { BLOCK = 100000, THREADS = 8, ROUNDS = 1000 };
static char data[BLOCK];
static void *volatile nowhere;

// Calls: open 1, write 4 (360,000 bytes), read 6 (200,100), sync 2, close 1.
static void posix(void)
{
    int fd = open("posix", O_CREAT | O_RDWR | O_TRUNC, 0600);
    struct iovec two[] = {{data, 60000}, {data, 40000}};
    CHECK(write(fd, data, BLOCK) == BLOCK && writev(fd, two, 2) == BLOCK);
    CHECK(pwrite(fd, data, BLOCK, 0) == BLOCK && pwritev(fd, two, 1, 0) == 60000);
    CHECK(pread(fd, data, BLOCK, 0) == BLOCK && preadv(fd, two, 2, 0) == BLOCK);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, data, 100) == 100 && readv(fd, two, 0) == 0);
    errno = 0;
    CHECK(read(fd, nowhere, 1) < 0 && errno == EFAULT);
    errno = EDOM;
    CHECK(pread(fd, data, 1, 1 << 30) == 0 && errno == EDOM);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && close(fd) == 0);
    errno = 0;
    CHECK(close(fd) < 0 && errno == EBADF && read(fd, data, 1) < 0 && errno == EBADF);
    CHECK(open("missing/file", O_RDONLY) < 0 && errno == ENOENT);
}

// Calls: open 2, write 6 (1,034 bytes: 1000 + 5 + 1 + 15 + 13), read 6 (1,022), sync 1, close 2.
static void standard(void)
{
    char line[2000], *text = NULL;
    size_t room = 0;
    FILE *f = fopen("standard", "w");
    memset(data, 'x', 1000);
    CHECK(fwrite(data, 10, 100, f) == 100 && fputs("end\nx", f) >= 0 && fputc('\n', f) == '\n');
    CHECK(fprintf(f, "%s %d\n", "formatted", 1234) == 15);
    CHECK(fprintf(f, "%012d\n", 7) == 13 && fwrite(data, 0, 5, f) == 0);
    CHECK(fflush(f) == 0 && fclose(f) == 0);
    f = fopen("standard", "r");
    CHECK(fread(data, 1, 1000, f) == 1000 && fgetc(f) == 'e' && fgets(line, sizeof line, f));
    CHECK(strcmp(line, "nd\n") == 0 && getline(&text, &room, f) == 2);
    CHECK(getline(&text, &room, f) == 15 && strcmp(text, "formatted 1234\n") == 0);
    CHECK(ftell(f) == 1021 && fgetc(f) == '0' && fclose(f) == 0);
    free(text);
}

static void *one_thread(void *path)
{
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (int i = 0; i < ROUNDS; i++)
        CHECK(pwrite(fd, data, 256, 0) == 256 && pread(fd, data, 100, 0) == 100);
    CHECK(close(fd) == 0);
    return NULL;
}

// Calls of each thread: open 1, write 1,000 (256,000 bytes), read 1,000 (100,000), close 1.
static void threads(void)
{
    pthread_t all[THREADS];
    char paths[THREADS][16];
    for (int i = 0; i < THREADS; i++) {
        snprintf(paths[i], sizeof paths[i], "thread-%d", i);
        CHECK(pthread_create(&all[i], NULL, one_thread, paths[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
}

// The first traced calls of a thread that has as little stack as there is. Calls: open 1, write
// 1,000 (256,000 bytes), read 1,000 (100,000), close 1.
static void little_stack(void)
{
    pthread_t thread;
    pthread_attr_t least;
    pthread_attr_init(&least);
    CHECK(pthread_attr_setstacksize(&least, (size_t)PTHREAD_STACK_MIN) == 0);
    CHECK(pthread_create(&thread, &least, one_thread, "little_stack") == 0);
    pthread_join(thread, NULL);
}

// Calls of the parent: open 1, write 1 (10 bytes); of each of 3 children: write 2 (70,010), close
// 1; then of the parent: write 1 (5), close 1. A child ends by _exit(), another by exit(), and the
// third one becomes `true`.
static void forks(void)
{
    int fd = open("forks", O_CREAT | O_WRONLY | O_APPEND, 0600);
    CHECK(write(fd, data, 10) == 10);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            CHECK(write(fd, data, 70000) == 70000 && write(fd, data, 10) == 10 && close(fd) == 0);
            if (i == 0)
                _exit(0);
            if (i == 1)
                exit(0);
            execlp("true", "true", NULL);
            CHECK(0); // execlp() has failed
        }
        int status = 1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    CHECK(write(fd, data, 5) == 5 && close(fd) == 0);
}

// Sockets, pipes and devices are not counted. Calls for the file: open 1, write 1 (3 bytes), read 1
// (3); for its duplicate, whose descriptor was a socket before: write 1 (4); close 2.
static void others(void)
{
    int pair[2], ends[2], null = open("/dev/null", O_WRONLY);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(ends) == 0);
    CHECK(write(pair[0], data, 10) == 10 && read(pair[1], data, 10) == 10);
    CHECK(write(ends[1], data, 10) == 10 && read(ends[0], data, 10) == 10);
    CHECK(write(null, data, 10) == 10 && close(null) == 0);
    int fd = open("others", O_CREAT | O_RDWR | O_TRUNC, 0600);
    CHECK(write(fd, "abc", 3) == 3 && pread(fd, data, 10, 0) == 3);
    CHECK(dup2(fd, pair[0]) == pair[0] && write(pair[0], "defg", 4) == 4);
    CHECK(close(fd) == 0 && close(pair[0]) == 0);
}

// Calls: open 2, write 1 + 2 (100,000 + 100,001 bytes), read 2 (100,001), close 2.
static void copies(void)
{
    off64_t at = 0;
    off_t from = 0;
    int in = open("in", O_CREAT | O_RDWR | O_TRUNC, 0600),
        out = open("out", O_CREAT | O_RDWR | O_TRUNC, 0600);
    CHECK(write(in, data, BLOCK) == BLOCK);
    CHECK(sendfile(out, in, &from, BLOCK) == BLOCK);
    CHECK(copy_file_range(in, &at, out, NULL, 1, 0) == 1);
    CHECK(close(in) == 0 && close(out) == 0);
}

static void check_stat(int fd)
{
    struct stat told, real;
    memset(&told, 0, sizeof told);
    memset(&real, 0, sizeof real);
    errno = EDOM;
    CHECK(fstat(fd, &told) == 0 && errno == EDOM);
    CHECK(fstatat(fd, "", &real, AT_EMPTY_PATH) == 0);
    CHECK(memcmp(&told, &real, sizeof told) == 0);
    CHECK(fstat(-1, &told) == -1 && errno == EBADF);
    CHECK(fstat(AT_FDCWD, &told) == -1 && errno == EBADF);
}

// fstat says what it says without tracing, also where a filter allows only the system call that
// libc makes. Calls: open 1, write 1 (100,000 bytes), read 1 (100), close 1.
static void stats(void)
{
    int ends[2], fd = open("stats", O_CREAT | O_RDWR | O_TRUNC, 0600);
    CHECK(pipe(ends) == 0 && write(fd, data, BLOCK) == BLOCK);
    check_stat(fd);
    check_stat(ends[0]);
#if defined(__x86_64__) && __GLIBC__ == 2 && __GLIBC_MINOR__ >= 33 && __GLIBC_MINOR__ < 39
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    check_stat(fd);
    check_stat(ends[0]);
#endif
    CHECK(pread(fd, data, 100, 0) == 100 && close(fd) == 0);
}

static volatile sig_atomic_t handled;
static int signal_fd;

static void handler(int number)
{
    (void)number;
    int code = errno;
    CHECK(write(signal_fd, "s", 1) == 1);
    handled = handled + 1;
    errno = code;
}

// The program writes while the handler of a timer writes, too. Calls: write 20,000 (200,000 bytes),
// and one write for each byte of the file "handled".
static void signals(void)
{
    int fd = open("signals", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    signal_fd = open("handled", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    sigaction(SIGUSR1, &action, NULL);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    for (int i = 0; i < 20000 || handled < 10; i++)
        CHECK(i >= 20000 || write(fd, data, 10) == 10);
    CHECK(timer_settime(timer, 0, &never, NULL) == 0 && timer_delete(timer) == 0);
    CHECK(close(fd) == 0 && close(signal_fd) == 0);
}

// The library blocks signals with syscall(2). The program's own function, which it finds first,
// raises one just before.
static bool interrupting;

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    long a[SYSCALL_ARGUMENTS];
    va_list list;
    va_start(list, number);
    syscall_arguments(list, a);
    va_end(list);
    if (interrupting && number == SYS_rt_sigprocmask && a[0] == SIG_BLOCK)
        raise(SIGUSR1);
    return next_syscall(number, a);
}

// Calls: write 1,000 (10,000 bytes), and one write for each byte of the file "handled".
static void interrupted(void)
{
    int fd = open("signals", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    signal_fd = open("handled", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    interrupting = true;
    for (int i = 0; i < 1000; i++)
        CHECK(write(fd, data, 10) == 10);
    interrupting = false;
    CHECK(close(fd) == 0 && close(signal_fd) == 0);
}

static sigjmp_buf before_the_call;

static void jumps_away(int number)
{
    (void)number;
    siglongjmp(before_the_call, 1);
}

// A signal handler leaves the accounting of the first write by a jump. Calls: write 11 (110 bytes).
static void jumped(void)
{
    int fd = open("jumped", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    signal(SIGUSR1, jumps_away);
    interrupting = true;
    if (!sigsetjmp(before_the_call, 1)) {
        write(fd, data, 10);
        CHECK(0); // the handler has not run
    }
    interrupting = false;
    for (int i = 0; i < 10; i++)
        CHECK(write(fd, data, 10) == 10);
    CHECK(close(fd) == 0);
}

static void is_cancelled(void *file)
{
    CHECK(unlink(file) == 0);
}

static void *read_cancelled(void *file)
{
    int fd = open(file, O_CREAT | O_RDWR | O_TRUNC, 0600);
    pthread_cleanup_push(is_cancelled, file);
    struct stat info;
    CHECK(fd >= 0 && pthread_cancel(pthread_self()) == 0);
    CHECK(fstat(fd, &info) == 0 && dup2(fd, fd) == fd); // these are no cancellation points
    read(fd, data, 1);
    _exit(1); // CHECK would print, which is a cancellation point
    pthread_cleanup_pop(0);
    return NULL;
}

// A read is a cancellation point. The only thread of the program leaves no file, so test_io.py sees
// that its cleanup has run. A program that reads __libc_single_threaded has a copy of it, which
// libc's pthread_cancel does not change. Calls: open 1.
static void cancelled(void)
{
    CHECK(__libc_single_threaded);
    read_cancelled("cancelled");
}

// As above, but in a second thread. Afterwards the accounting works. Calls: open 2, write 4, read 6
// (those of posix).
static void cancelled_thread(void)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, read_cancelled, "cancelled") == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    posix();
    CHECK(unlink("posix") == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"posix", posix},
               {"standard", standard},
               {"threads", threads},
               {"little_stack", little_stack},
               {"forks", forks},
               {"others", others},
               {"copies", copies},
               {"stats", stats},
               {"signals", signals},
               {"interrupted", interrupted},
               {"jumped", jumped},
               {"cancelled", cancelled},
               {"cancelled_thread", cancelled_thread}};
    CHECK(argc == 3 && chdir(argv[1]) == 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, argv[2]) == 0)
            all[i].run();
    return 0;
}
