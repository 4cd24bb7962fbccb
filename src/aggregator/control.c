#include "aggregator/control.h"

#include "base/full_io.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

// Raises the limit, because each recording, client and node may need a descriptor.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int control_open(struct control *c, int fd, struct error *e)
{
    sigset_t ours;
    *c = (struct control){.fd = fd, .saying = PTHREAD_MUTEX_INITIALIZER};
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN); // poll notices if the other end of a descriptor is closed
    raise_descriptor_limit();
    c->signals = signalfd(-1, &ours, SFD_CLOEXEC);
    return c->signals < 0 ? error_set(e, -errno, "cannot watch for signals: %s", strerror(errno))
                          : 0;
}

void control_close(struct control *c)
{
    if (c->signals >= 0)
        close(c->signals);
}

void control_say(struct control *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&c->saying);
    if (c->fd >= 0)
        full_write_line(c->fd, 0, format, args);
    pthread_mutex_unlock(&c->saying);
    va_end(args);
}

static void take_bytes(struct control *c, struct str piece,
                       void (*take)(void *user, struct str line), void *user)
{
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.data[i] != '\n') {
            if (c->line_size < sizeof c->line)
                c->line[c->line_size] = piece.data[i];
            c->line_size += c->line_size <= sizeof c->line;
            continue;
        }
        if (take && c->line_size <= sizeof c->line)
            take(user, (struct str){c->line, c->line_size});
        c->line_size = 0;
    }
}

// True if the other end is closed.
static bool ended(struct control *c, short events, void (*take)(void *user, struct str line),
                  void *user)
{
    char piece[CONTROL_LINE_MAX];
    if (events & (POLLERR | POLLNVAL))
        return true;
    if (events & POLLIN) {
        ssize_t n = read(c->fd, piece, sizeof piece);
        if (n > 0)
            take_bytes(c, (struct str){piece, (size_t)n}, take, user);
        if (n < 0 && errno == EBADF) // a regular file for the output, which has no other end
            c->fd = -1;
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != EBADF);
    }
    return events & POLLHUP;
}

bool control_wait(struct control *c, int timeout_ms, void (*take)(void *user, struct str line),
                  void *user)
{
    struct pollfd fds[2] = {{.fd = c->signals, .events = POLLIN}, {.fd = c->fd, .events = POLLIN}};
    if (poll(fds, 2, timeout_ms) < 0)
        return errno == EINTR;
    struct signalfd_siginfo taken;
    if (fds[0].revents && read(c->signals, &taken, sizeof taken) == sizeof taken)
        return false;
    return !ended(c, fds[1].revents, take, user);
}
