// command_probe.c - times a small fixed piece of work on each GPU or core, and prints lines for
// `sonde put` and script collectors.
//
// Every device has a process of its own: the driver's state ends with it, and if the process hangs,
// only this device's result is lost. Counting the GPUs also needs a process of its own, because a
// process that has used a driver cannot have children that use it. GPUs work in parallel, but cores
// one after another, because they share their memory.
#include "cli/commands.h"

#include "base/clock.h"
#include "base/log.h"
#include "detect/probe.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TARGETS_MAX = 1024,
    COUNT = -1, // instead of a device: count the devices
};

struct target {
    enum probe_kind kind;
    int index; // or COUNT
    pid_t pid; // 0: not started, or ended
    int from;  // descriptor of the process's output; -1: the process has ended
};

// The output of a process, written in one piece.
struct probe_output {
    int status;
    struct probe_result result;
    struct error why;
};

_Static_assert(sizeof(struct probe_output) <= PIPE_BUF, "one write puts it into the pipe whole");

static const struct {
    const char *name, *tag;
} kinds[] = {[PROBE_CPU] = {"cpu", "core"}, [PROBE_GPU] = {"gpu", "gpu"}};

// ---------------------------------------------------------------- processes

static int start(struct target *t, struct error *e)
{
    int ends[2];
    if (pipe(ends) != 0)
        return error_set(e, -errno, "cannot make a pipe: %s", strerror(errno));
    t->pid = fork();
    if (t->pid < 0) {
        t->pid = 0;
        close(ends[0]);
        close(ends[1]);
        return error_set(e, -errno, "cannot start a process: %s", strerror(errno));
    }
    if (t->pid == 0) {
        struct probe_output output = {0};
        output.status = t->index == COUNT
                            ? probe_count(t->kind, &output.why)
                            : probe_run(t->kind, t->index, &output.result, &output.why);
        _exit(write(ends[1], &output, sizeof output) == (ssize_t)sizeof output ? 0 : 1);
    }
    close(ends[1]);
    t->from = ends[0];
    return 0;
}

// Reads the output of a process, and ends the process. Returns false if there is no output.
static bool read_output(struct target *t, bool in_time, struct probe_output *output)
{
    bool whole = in_time && read(t->from, output, sizeof *output) == (ssize_t)sizeof *output;
    close(t->from);
    t->from = -1;
    if (!whole)
        kill(t->pid, SIGKILL);
    // Do not wait for a process that hangs in its driver; init reaps it later.
    waitpid(t->pid, NULL, whole ? 0 : WNOHANG);
    t->pid = 0;
    return whole;
}

// ---------------------------------------------------------------- devices

static int count_devices(enum probe_kind kind, int timeout_ms, struct error *e)
{
    struct target t = {.kind = kind, .index = COUNT};
    int status = start(&t, e);
    if (status < 0)
        return status;
    struct probe_output output;
    struct pollfd polled = {.fd = t.from, .events = POLLIN};
    int ready;
    do
        ready = poll(&polled, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (!read_output(&t, ready > 0, &output))
        return error_set(e, -EIO, "cannot count the %ss: no answer%s", kinds[kind].name,
                         ready > 0 ? "" : " in time");
    if (output.status < 0)
        *e = output.why;
    return output.status;
}

// Adds the targets "gpu" or "cpu" (all of them), or a single one such as "gpu:3".
static int add_targets(struct target *targets, size_t *count, const char *what, int timeout_ms,
                       struct error *e)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t size = strlen(kinds[k].name);
        if (strncmp(what, kinds[k].name, size) != 0 || (what[size] && what[size] != ':'))
            continue;
        uint64_t first = 0, end;
        if (what[size] && (!str_to_u64(str_of(what + size + 1), &first) || first >= TARGETS_MAX))
            break;
        end = first + 1;
        if (!what[size]) {
            int there = count_devices((enum probe_kind)k, timeout_ms, e);
            if (there < 0)
                return there;
            end = (uint64_t)there;
        }
        for (uint64_t i = first; i < end && *count < TARGETS_MAX; i++)
            targets[(*count)++] =
                (struct target){.kind = (enum probe_kind)k, .index = (int)i, .from = -1};
        return 0;
    }
    return error_set(e, -EINVAL, "cannot probe '%s': write gpu, gpu:0, cpu or cpu:0", what);
}

// Chooses targets. Without arguments, they are the GPUs if any exist, else the cores.
static int choose(struct target *targets, size_t *count, const struct options *o, int timeout_ms,
                  struct error *e)
{
    int status = 0;
    for (int i = 0; i < o->argument_count && status == 0; i++)
        status = add_targets(targets, count, o->arguments[i], timeout_ms, e);
    if (o->argument_count == 0 &&
        (add_targets(targets, count, "gpu", timeout_ms, e) < 0 || *count == 0))
        status = add_targets(targets, count, "cpu", timeout_ms, e);
    return status;
}

// ---------------------------------------------------------------- results

static void print_value(struct buf *out, const struct target *t, const struct probe_result *r,
                        const char *metric, double seconds)
{
    if (isnan(seconds))
        return;
    buf_printf(out, "%s %.9g %s=%d", metric, seconds, kinds[t->kind].tag, t->index);
    if (r->uuid[0])
        buf_printf(out, " uuid=%s", r->uuid);
    buf_add_char(out, '\n');
}

// Reads a result, or reports that it is missing. Returns true for a figure.
static bool finish(struct target *t, bool in_time, struct buf *out)
{
    struct probe_output output;
    bool whole = read_output(t, in_time, &output);
    if (!whole)
        log_warning("%s %d %s", kinds[t->kind].name, t->index,
                    in_time ? "has ended its probe without a result" : "does not answer in time");
    else if (output.status < 0)
        log_warning("%s %d: %s%s", kinds[t->kind].name, t->index, output.why.text,
                    output.status == -EBUSY ? "; level 3 shows its clock without a probe" : "");
    if (!whole || output.status < 0)
        return false;
    print_value(out, t, &output.result, "probe_compute_seconds", output.result.compute_s);
    print_value(out, t, &output.result, "probe_memory_seconds", output.result.memory_s);
    return true;
}

// Waits for targets first … end - 1. Returns the number of figures.
static size_t gather(struct target *targets, size_t first, size_t end, int64_t deadline_ns,
                     struct buf *out)
{
    size_t good = 0, left = 0;
    struct pollfd polled[TARGETS_MAX];
    for (size_t i = first; i < end; i++)
        left += targets[i].from >= 0;
    while (left) {
        int64_t wait_ns = deadline_ns - clock_monotonic_ns();
        bool late = wait_ns <= 0;
        for (size_t i = first; i < end; i++)
            polled[i - first] = (struct pollfd){.fd = targets[i].from, .events = POLLIN};
        if (poll(polled, end - first, late ? 0 : (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS)) <
                0 &&
            errno != EINTR)
            late = true;
        for (size_t i = first; i < end; i++) {
            bool there = polled[i - first].revents != 0;
            if (targets[i].from < 0 || (!there && !late))
                continue;
            good += finish(&targets[i], there, out);
            left--;
        }
    }
    return good;
}

int command_probe(const struct options *o)
{
    struct error e = {0};
    struct target *targets = calloc(TARGETS_MAX, sizeof *targets);
    size_t count = 0, good = 0;
    int64_t timeout_ns = (int64_t)(options_number(o, OPT_TIMEOUT) * NS_PER_S);
    int status = targets ? choose(targets, &count, o, (int)(timeout_ns / NS_PER_MS), &e)
                         : error_set(&e, -ENOMEM, "no memory");
    if (status < 0) {
        free(targets);
        return command_failed(status == -EINVAL ? EXIT_USAGE : EXIT_FAILED, &e);
    }
    struct buf out = {0};
    for (size_t i = 0; i < count;) {
        size_t end = i;
        do { // GPUs in parallel
            if (start(&targets[end], &e) < 0)
                log_warning("%s", e.text);
            end++;
        } while (end < count && targets[end].kind != PROBE_CPU &&
                 targets[end - 1].kind != PROBE_CPU);
        good += gather(targets, i, end, clock_monotonic_ns() + timeout_ns, &out);
        i = end;
    }
    free(targets);
    int code = command_print(&out);
    return code == EXIT_OK && good < count ? EXIT_FAILED : code;
}
