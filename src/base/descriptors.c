#include "base/descriptors.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void descriptors_prepare(int count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)count)
        count = (int)limit.rlim_cur;
    // The copy of any open descriptor will do.
    for (int from = 0; from < 3; from++) {
        int fd = fcntl(from, F_DUPFD_CLOEXEC, count - 1);
        if (fd < 0)
            continue;
        close(fd);
        return;
    }
}

// Large enough for DESCRIPTORS_MAX, and aligned for the first header.
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

ssize_t descriptors_send(int socket, const void *data, size_t size, const int *fds, size_t count,
                         int flags)
{
    assert(count <= DESCRIPTORS_MAX);
    struct iovec piece = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    union control control;
    if (count) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
    }
    return sendmsg(socket, &message, flags);
}

ssize_t descriptors_receive(int socket, void *data, size_t size, int fds[DESCRIPTORS_MAX],
                            size_t *count, int flags)
{
    union control control;
    struct iovec piece = {data, size};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *count = 0;
    ssize_t n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message); c;
         c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t more = (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
        // all of them fit, because the kernel passes no more than `control` has room for
        memcpy(fds + *count, CMSG_DATA(c), more * sizeof *fds);
        *count += more;
    }
    return n;
}

void descriptors_close(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}
