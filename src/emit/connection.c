// connection.c - the socket to the agent: a HELLO with the segment, then doorbells. Only the first
// HELLO of a process may wait, and only while the agent's queue of connections is full. Without
// this wait, a short program would end before the agent finds it.
//
// The program may have closed our descriptors (daemons close all of them), and their numbers may
// belong to other files by now, so every use first compares the inode. A listener at the agent's
// path gets a HELLO only if it is a process of our own user, because after the end of a job another
// user may have recreated its folder.
#include "base/agent_address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "emit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { QUEUE_WAIT_MS = 100 };
enum { FIRST_FREE_FD = 3 }; // 0, 1 and 2 may be closed, and the program may reopen them later

int emit_high_fd(int fd)
{
    if (fd < 0 || fd >= FIRST_FREE_FD)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    close(fd);
    return high;
}

uint64_t emit_inode(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

bool emit_is_open(const struct emit_file *f)
{
    return f->fd >= 0 && f->inode && emit_inode(f->fd) == f->inode;
}

void emit_close(struct emit_file *f)
{
    if (emit_is_open(f))
        close(f->fd);
    f->fd = -1;
}

// Opens a new descriptor of the segment for the agent, because an agent could write through the
// program's own descriptor. The caller closes it.
static int descriptor_to_pass(const struct emit_segment *s)
{
    char path[64];
    if (s->sealed)
        return fcntl(s->file.fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->file.fd);
    return emit_high_fd(open(path, O_RDONLY | O_CLOEXEC));
}

static bool send_hello(const struct emit_process *p, int fd, int segment_fd)
{
    const int fds[] = {segment_fd, p->segment.agent_file.fd};
    struct segment_hello hello = {
        .magic = SEGMENT_HELLO_MAGIC,
        .version = SEGMENT_VERSION,
        .moves = atomic_load_explicit(&p->header->moves, memory_order_relaxed)};
    ssize_t sent = descriptors_send(fd, &hello, sizeof hello, fds, 2, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == (ssize_t)sizeof hello;
}

// Returns 0, or an errno.
static int try_connect(const struct emit_process *p, int fd)
{
    int failed = agent_connect(fd, p->socket_path);
    failed = failed ? failed : agent_check_owner(fd);
    if (failed)
        return failed;
    int segment_fd = descriptor_to_pass(&p->segment);
    if (segment_fd < 0)
        return errno;
    failed = send_hello(p, fd, segment_fd) ? 0 : errno;
    close(segment_fd);
    return failed;
}

// Makes a socket. With `wait`, its connect() waits for room in the listener's queue. All other
// calls on it pass MSG_DONTWAIT.
static int make_socket(bool wait)
{
    struct timeval most = {.tv_usec = QUEUE_WAIT_MS * 1000};
    int fd =
        emit_high_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0));
    if (fd >= 0 && wait && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool emit_is_connected(const struct emit_process *p)
{
    char byte;
    return emit_is_open(&p->socket) && recv(p->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

int emit_connect(struct emit_process *p, bool wait)
{
    emit_close(&p->socket);
    if (!emit_is_open(&p->segment.file) || !emit_is_open(&p->segment.agent_file))
        // the program has closed the descriptors: an agent that already has them continues, but no
        // other agent can get them
        return EBADF;
    int fd = make_socket(wait);
    if (fd < 0)
        return errno;
    int failed = try_connect(p, fd);
    if (failed == 0) {
        p->socket = (struct emit_file){fd, emit_inode(fd)};
        return 0;
    }
    close(fd);
    if (!p->logged_no_agent && failed == EPERM)
        emit_say("another user listens at %s and gets no data; start the job again with "
                 "sonde run",
                 p->socket_path);
    else if (!p->logged_no_agent)
        emit_say("no agent at %s yet (%s); it will find this program when it starts",
                 p->socket_path, strerror(failed));
    p->logged_no_agent = true;
    return failed;
}

void emit_connection_tend(struct emit_process *p)
{
    int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);
    int64_t due = atomic_load_explicit(&p->connect_after_ns, memory_order_relaxed);
    if (now < due ||
        !atomic_compare_exchange_strong_explicit(&p->connect_after_ns, &due, now + NS_PER_S,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    if (!emit_trylock(p))
        return; // the next bell tries again
    if (!emit_is_connected(p))
        emit_connect(p, false);
    emit_unlock(p);
}

void emit_bell(struct emit_process *p)
{
    if (atomic_load_explicit(&p->agent->asleep, memory_order_relaxed) && emit_trylock(p)) {
        if (atomic_exchange_explicit(&p->agent->asleep, 0, memory_order_relaxed) &&
            emit_is_open(&p->socket) &&
            send(p->socket.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
            errno != EWOULDBLOCK)
            emit_close(&p->socket);
        emit_unlock(p);
    }
    emit_connection_tend(p);
}
