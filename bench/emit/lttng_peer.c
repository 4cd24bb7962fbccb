// lttng_peer.c - prints the nanoseconds of an LTTng-UST tracepoint, and of a clock_gettime() for
// comparison.
//
// Without arguments, it starts a session daemon (unless one runs), a flight-recorder session, and
// itself again as the traced program, which must start after the daemon. It leaves no processes
// behind.
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_point.h"

#include "base/clock.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 51, POINTS = 40000 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int traced(void)
{
    static double ns[ROUNDS], clock_ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from = clock_monotonic_ns();
        for (int i = 0; i < POINTS; i++)
            lttng_ust_tracepoint(sonde_bench, point, 1, (double)i);
        int64_t between = clock_monotonic_ns();
        for (int i = 0; i < POINTS; i++)
            __asm__ volatile("" : : "r"(clock_realtime_ns()));
        ns[round] = (double)(between - from) / POINTS;
        clock_ns[round] = (double)(clock_monotonic_ns() - between) / POINTS;
    }
    bool on = lttng_ust_tracepoint_enabled(sonde_bench, point);
    qsort(ns, ROUNDS, sizeof *ns, compare);
    qsort(clock_ns, ROUNDS, sizeof *clock_ns, compare);
    if (on)
        printf("%.2f %.2f\n", ns[ROUNDS / 2], clock_ns[ROUNDS / 2]);
    return !on;
}

static bool shell(const char *command)
{
    return system(command) == 0; // NOLINT: the commands are fixed
}

// Starts the daemon and waits for its SIGUSR1, which reports that it is ready.
static pid_t start_daemon(void)
{
    sigset_t ready;
    sigemptyset(&ready);
    sigaddset(&ready, SIGUSR1);
    sigaddset(&ready, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ready, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_UNBLOCK, &ready, NULL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(127);
        execlp("lttng-sessiond", "lttng-sessiond", "--sig-parent", "--no-kernel", "--quiet",
               (char *)NULL);
        _exit(127);
    }
    struct timespec patience = {10, 0};
    if (pid < 0 || sigtimedwait(&ready, NULL, &patience) != SIGUSR1) {
        if (pid > 0) {
            kill(pid, SIGTERM);
            waitpid(pid, NULL, 0);
        }
        return -1;
    }
    return pid;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "traced") != 0 || traced();
    char self[512] = "", command[600];
    bool good = readlink("/proc/self/exe", self, sizeof self - 1) > 0;
    pid_t daemon = shell("lttng list >/dev/null 2>&1 --no-sessiond") ? 0 : start_daemon();
    good = good && daemon >= 0 &&
           shell("lttng -n -q create sonde-bench --snapshot >/dev/null 2>&1") &&
           shell("lttng -n -q enable-event -u sonde_bench:point -s sonde-bench >/dev/null 2>&1") &&
           shell("lttng -n -q start sonde-bench >/dev/null 2>&1");
    snprintf(command, sizeof command, "LTTNG_UST_REGISTER_TIMEOUT=-1 '%s' traced", self);
    if (!good || !shell(command))
        fprintf(stderr, "bench: no LTTng session could be started: lttng-ust is left out\n");
    shell("lttng -n -q destroy sonde-bench >/dev/null 2>&1");
    if (daemon > 0) {
        kill(daemon, SIGTERM);
        waitpid(daemon, NULL, 0);
    }
    return !good;
}
