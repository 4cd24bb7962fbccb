// connection.c - the socket to the agent: a HELLO with the segment, then doorbells. Nothing here waits.
//
// The program may have closed our descriptor (daemons close all of them) and the number may be another file's by now, so
// its inode is compared before every use.
#include "base/clock.h"
#include "emit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FREE_FD = 3 }; // 0, 1, 2 may be closed, and opened again by the program as its own

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

void emit_close(int *fd, uint64_t inode)
{
    if (inode && emit_inode(*fd) == inode)
        close(*fd);
    *fd = -1;
}

static bool send_hello(int fd, int segment_fd)
{
    struct segment_hello hello = {.magic = SEGMENT_HELLO_MAGIC, .version = SEGMENT_VERSION};
    struct iovec piece = {&hello, sizeof hello};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &segment_fd, sizeof segment_fd);
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

void emit_connect(struct emit_process *p)
{
    emit_close(&p->socket_fd, p->socket_inode);
    if (!p->segment_inode || emit_inode(p->segment_fd) != p->segment_inode)
        return; // the program has closed it: an agent that has it goes on, no other one can get it
    int fd = emit_high_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, p->socket_path, sizeof address.sun_path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || !send_hello(fd, p->segment_fd)) {
        if (!p->said_no_agent)
            emit_say("no agent at %s yet (%s); it will find this program when it starts", p->socket_path,
                     strerror(errno));
        p->said_no_agent = true;
        close(fd);
        return;
    }
    p->socket_inode = emit_inode(fd);
    p->socket_fd = fd;
}

void emit_connection_tend(struct emit_process *p)
{
    int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);
    int64_t due = atomic_load_explicit(&p->connect_after_ns, memory_order_relaxed);
    if (now < due || !atomic_compare_exchange_strong_explicit(&p->connect_after_ns, &due, now + NS_PER_S,
                                                              memory_order_relaxed, memory_order_relaxed))
        return;
    if (pthread_mutex_trylock(&p->lock) != 0)
        return; // another time
    char byte;
    bool there = p->socket_fd >= 0 && emit_inode(p->socket_fd) == p->socket_inode &&
                 recv(p->socket_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (!there)
        emit_connect(p);
    pthread_mutex_unlock(&p->lock);
}

void emit_bell(struct emit_process *p)
{
    if (atomic_load_explicit(&p->agent->asleep, memory_order_relaxed) && pthread_mutex_trylock(&p->lock) == 0) {
        if (atomic_exchange_explicit(&p->agent->asleep, 0, memory_order_relaxed) && p->socket_fd >= 0 &&
            emit_inode(p->socket_fd) == p->socket_inode && send(p->socket_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
            errno != EAGAIN && errno != EWOULDBLOCK)
            emit_close(&p->socket_fd, p->socket_inode);
        pthread_mutex_unlock(&p->lock);
    }
    emit_connection_tend(p);
}
