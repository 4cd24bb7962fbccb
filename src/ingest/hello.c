// hello.c - receives a program's HELLO (emit/segment.h) and its descriptors from a socket. The peer
// may send anything.
#include "ingest/hello.h"
#include "base/log.h"
#include "emit/segment.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Receives the message and its descriptors, and closes the surplus ones.
static int receive(int socket, struct segment_hello *hello, struct ingest_descriptors *out)
{
    enum { FDS_MAX = 8 };
    struct iovec piece = {hello, sizeof *hello};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int one;
            memcpy(&one, CMSG_DATA(c) + at, sizeof one);
            if (out->segment < 0)
                out->segment = one;
            else if (out->agent_area < 0)
                out->agent_area = one;
            else
                close(one);
        }
    }
    if (n != (ssize_t)sizeof *hello || hello->magic != SEGMENT_HELLO_MAGIC)
        return -EPROTO;
    if (hello->version != SEGMENT_VERSION)
        return -EPROTONOSUPPORT;
    out->moves = hello->moves;
    return out->segment >= 0 && out->agent_area >= 0 ? 0 : -EPROTO;
}

int ingest_receive_hello(int socket, struct ingest_descriptors *fds, pid_t *pid)
{
    *fds = (struct ingest_descriptors){.segment = -1, .agent_area = -1};
    *pid = 0;
    unsigned char first;
    ssize_t n = recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0)
        return -ENOTCONN;
    if (n < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    if (first != (SEGMENT_HELLO_MAGIC & 0xff))
        return -ENOMSG;
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return -errno;
    if (peer.uid != geteuid())
        return -EPERM;
    struct segment_hello hello = {0};
    int r = receive(socket, &hello, fds);
    if (r != 0)
        ingest_descriptors_close(fds);
    static pid_t invisible = 0;
    *pid = peer.pid > 0 ? peer.pid : --invisible;
    return r;
}

void ingest_warn_version(pid_t pid)
{
    static bool warned;
    if (!warned)
        log_warning(
            "process %ld is linked with a libsonde of another version, and this agent cannot read "
            "its data: link "
            "the program with the libsonde of this sonde (%s); more such programs are not listed",
            (long)pid, SONDE_VERSION);
    warned = true;
}
