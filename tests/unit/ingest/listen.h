// listen.h - a socket that stands in for the agent's.
#ifndef SONDE_TESTS_LISTEN_H
#define SONDE_TESTS_LISTEN_H

#include "unit/test.h"

#include <sys/socket.h>
#include <sys/un.h>

static inline int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

#endif
