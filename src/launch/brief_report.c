#include "launch/brief_report.h"

#include "base/clock.h"
#include "base/forked.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs in the new process: only calls that are safe between fork and exec.
static _Noreturn void become_report(const char *folder, int out, pid_t parent)
{
    static const char *const unset[] = {"SONDE_CONFIG", "DRAGON_TELEMETRY_CONFIG"};
    forked_begin(parent, SIGKILL);
    setsid(); // a session of its own, so that only the launcher handles Ctrl-C on the terminal
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0)
        _exit(1);
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        unsetenv(unset[i]);
    execl("/proc/self/exe", "sonde", "report", "--brief", folder, (char *)NULL);
    _exit(1);
}

// Reads until the writer closes the pipe. Returns false if the writer did not close it by the
// deadline, or wrote too much.
static bool read_lines(int fd, int64_t deadline_ns, struct buf *out)
{
    char piece[1024];
    while (out->size < BRIEF_REPORT_BYTES) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        int ready = left_ns > 0 ? poll(&polled, 1, (int)(left_ns / NS_PER_MS) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = ready > 0 ? read(fd, piece, sizeof piece) : -1;
        if (n == 0)
            return !out->failed;
        if (n < 0)
            return false;
        buf_add(out, piece, (size_t)n);
    }
    return false;
}

void brief_report(const char *folder, int64_t start_ns, int64_t end_ns)
{
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)BRIEF_REPORT_MS * NS_PER_MS;
    struct buf lines = {0};
    int ends[2], status = 0;
    if (end_ns - start_ns < BRIEF_REPORT_LEAST_S * (int64_t)NS_PER_S || pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become_report(folder, ends[1], self);
    close(ends[1]);
    bool whole = pid > 0 && read_lines(ends[0], deadline_ns, &lines);
    close(ends[0]);
    if (pid > 0) {
        if (!whole)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (whole && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        fputs(buf_cstr(&lines), stderr);
    buf_free(&lines);
}
