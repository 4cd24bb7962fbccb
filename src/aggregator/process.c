// process.c - the aggregator as a process of its own.
//
// Whoever starts it holds the other end of control_fd (a pipe or a socket): it reads "ready PORT\n" or "error TEXT\n" there, and
// when it goes away, however it dies, its end is closed and the aggregator leaves too.
#include "aggregator/aggregator.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

// A recording may take a descriptor each, a client one: as many as the system lets us have.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// Whoever does not listen any more is noticed by serve().
static void tell(int control_fd, const char *word, const char *text)
{
    char line[ERROR_TEXT_MAX + 16];
    int size = snprintf(line, sizeof line, "%s %s\n", word, text);
    if (control_fd < 0)
        return;
    for (int at = 0; at < size;) {
        ssize_t n = write(control_fd, line + at, (size_t)(size - at));
        if (n < 0 && errno != EINTR)
            return;
        at += n > 0 ? (int)n : 0;
    }
}

// Whether the other end is gone. What it may have sent is read and ignored.
static bool ended(struct pollfd *control)
{
    char ignored[256];
    if (control->revents & (POLLERR | POLLNVAL))
        return true;
    if (control->revents & POLLIN) {
        ssize_t n = read(control->fd, ignored, sizeof ignored);
        if (n < 0 && errno == EBADF) // a plain file to write into: it has no other end
            control->fd = -1;
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != EBADF);
    }
    return control->revents & POLLHUP;
}

static void serve(int signal_fd, int control_fd)
{
    struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = control_fd, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return;
        struct signalfd_siginfo taken; // read, or the signal would strike when it is unblocked
        if (fds[0].revents && read(signal_fd, &taken, sizeof taken) == sizeof taken)
            return;
        if (ended(&fds[1]))
            return;
    }
}

int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e)
{
    struct error own = {0};
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, pipe_before;
    sigaction(SIGPIPE, &ignore, &pipe_before); // a control_fd that nobody reads is noticed by poll
    raise_descriptor_limit();
    struct aggregator *g = NULL;
    int signal_fd = signalfd(-1, &ours, SFD_CLOEXEC);
    int rc = signal_fd < 0 ? error_set(&own, -errno, "cannot watch for signals: %s", strerror(errno)) : 0;
    if (!rc)
        rc = aggregator_start(options, &g, &own);
    if (rc) {
        tell(control_fd, "error", own.text);
    } else {
        char port[16];
        snprintf(port, sizeof port, "%d", aggregator_port(g));
        tell(control_fd, "ready", port);
        serve(signal_fd, control_fd);
        aggregator_stop(g);
    }
    if (signal_fd >= 0)
        close(signal_fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc && e)
        *e = own;
    return rc;
}
