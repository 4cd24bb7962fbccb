#include "launch/child.h"

#include "base/clock.h"
#include "base/forked.h"
#include "base/full_io.h"
#include "base/str.h"
#include "launch/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// checked one by one if the kernel has no close_range
enum { DESCRIPTORS_CLOSED_MAX = 4096 };

void child_command_add(struct child_command *c, const char *format, ...)
{
    if (c->argc == CHILD_ARGUMENTS_MAX)
        c->failed = true;
    if (c->failed)
        return;
    va_list args;
    va_start(args, format);
    if (vasprintf(&c->argv[c->argc], format, args) < 0)
        c->failed = true;
    else
        c->argc++;
    va_end(args);
    c->argv[c->argc] = NULL;
}

int child_command_hand(struct child_command *c, int fd)
{
    c->failed = c->failed || c->handed_count == CHILD_HANDED_MAX || fd < CHILD_HIGH_FD;
    if (!c->failed)
        c->handed[c->handed_count++] = fd;
    return CHILD_HANDED_FD + c->handed_count - 1;
}

void child_command_free(struct child_command *c)
{
    for (int i = 0; i < c->argc; i++)
        free(c->argv[i]);
    *c = (struct child_command){0};
}

// The user's shell may have left descriptors open for the command. A copy in this child would keep
// them open.
static void close_from(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd < DESCRIPTORS_CLOSED_MAX; fd++) // Linux before 5.9
        close((int)fd);
}

// Runs in the new process: only calls that are safe between fork and exec.
static _Noreturn void become(struct child_command *command, int control, pid_t parent)
{
    forked_begin(parent, SIGTERM);
    // at its size limit a file causes an error, which is counted; it must not end the process
    signal(SIGXFSZ, SIG_IGN);
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (control == CHILD_CONTROL_FD)
        fcntl(control, F_SETFD, 0);
    else
        dup2(control, CHILD_CONTROL_FD);
    for (int i = 0; i < command->handed_count; i++)
        dup2(command->handed[i], CHILD_HANDED_FD + i);
    close_from((unsigned)(CHILD_HANDED_FD + command->handed_count));
    if (chdir("/") < 0)
        _exit(1);
    // The arguments contain all settings for the new process.
    unsetenv("SONDE_CONFIG");
    unsetenv("DRAGON_TELEMETRY_CONFIG");
    execv("/proc/self/exe", command->argv);
    static const char words[] = "error cannot run /proc/self/exe\n";
    ssize_t written = write(CHILD_CONTROL_FD, words, sizeof words - 1);
    (void)written;
    _exit(127);
}

int child_start(struct child *c, const char *what, struct child_command *command, struct error *e)
{
    *c = (struct child){
        .what = what, .state = CHILD_GONE, .control = -1, .early_ends = c->early_ends + 1};
    if (command->failed)
        return error_set(e, -ENOMEM, "cannot start the %s: out of memory", what);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set(e, -errno, "cannot start the %s: %s", what, strerror(errno));
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(command, pair[1], self);
    int code = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_set(e, -code, "cannot start the %s: %s", what, strerror(code));
    }
    c->state = CHILD_STARTING;
    c->early_ends--; // until the child has lived long enough, nobody knows whether it ends early
    c->started_ns = clock_monotonic_ns();
    c->pid = pid;
    c->control = pair[0];
    return 0;
}

static void close_control(struct child *c)
{
    if (c->control >= 0)
        close(c->control);
    c->control = -1;
}

// Handles a complete line of a starting child.
static void take_line(struct child *c)
{
    struct str line = {c->line, c->line_size};
    c->first_line_complete = true;
    if (!str_starts(line, STR("ready")))
        return;
    line = str_trim(str_slice(line, strlen("ready"), line.size));
    memmove(c->line, line.data, line.size);
    c->line[line.size] = 0;
    c->state = CHILD_READY;
}

// Handles a byte of a line from a child that is ready.
static void add_later(struct child *c, char byte)
{
    c->later.limit = CHILD_LATER_MAX;
    if (byte != '\n') {
        buf_add_char(&c->later, byte);
        return;
    }
    if (c->take && !c->later.failed)
        c->take(c->user, buf_cstr(&c->later));
    c->later.size = 0;
    c->later.failed = false;
}

void child_read(struct child *c)
{
    char piece[256];
    ssize_t n = 0;
    while (c->control >= 0 && (n = read(c->control, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (c->first_line_complete)
                add_later(c, piece[i]);
            else if (piece[i] == '\n')
                take_line(c);
            else if (c->line_size < CHILD_LINE_MAX - 1)
                c->line[c->line_size++] = piece[i]; // the last byte stays NUL
        }
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_control(c);
}

void child_tell(struct child *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (c->control >= 0)
        full_write_line(c->control, CHILD_TELL_MS, format, args);
    va_end(args);
}

bool child_refused(const struct child *c)
{
    return strncmp(c->line, "error ", strlen("error ")) == 0;
}

void child_stop(struct child *c)
{
    c->stopping = true;
    close_control(c);
}

void child_reaped(struct child *c, int status)
{
    // A child that has ended in order leaves nothing, and the search reads all processes.
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        descendants_end_session(c->pid);
    child_read(c); // reads its last messages
    close_control(c);
    buf_free(&c->later);
    c->state = CHILD_GONE;
    c->status = status;
    bool early = clock_monotonic_ns() - c->started_ns < (int64_t)CHILD_STEADY_S * NS_PER_S;
    c->early_ends = early ? c->early_ends + 1 : 0;
}

void child_status_text(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "exit code %d", WEXITSTATUS(status));
}
