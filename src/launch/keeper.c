#include "launch/keeper.h"

#include "base/array.h"
#include "base/descriptors.h"
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

void keeper_home_init(struct keeper_home *k)
{
    *k = (struct keeper_home){.fd = -1};
}

static size_t programs_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= KEEPER_SPARE)
        return 0;
    rlim_t programs = (limit.rlim_cur - KEEPER_SPARE) / 2;
    return programs < KEEPER_PROGRAMS_MAX ? (size_t)programs : KEEPER_PROGRAMS_MAX;
}

static void drop(struct keeper_home *k, size_t i)
{
    descriptors_close(k->kept[i].fds, 2);
    k->kept[i] = k->kept[--k->count];
}

// Keeps the descriptors, or closes them if there is no room.
static void keep(struct keeper_home *k, uint64_t program, const int fds[2])
{
    for (size_t i = 0; i < k->count; i++) {
        if (k->kept[i].program != program)
            continue;
        k->kept[i].anew = true;
        descriptors_close(fds, 2);
        return;
    }
    if (k->count >= programs_max() ||
        !array_room(&k->kept, &k->capacity, k->count + 1, sizeof *k->kept)) {
        descriptors_close(fds, 2);
        return;
    }
    k->kept[k->count++] = (struct kept){program, {fds[0], fds[1]}, true};
}

static void forget(struct keeper_home *k, uint64_t program)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->kept[i].program == program) {
            drop(k, i);
            return;
        }
}

// Returns false if no message is left.
static bool read_message(struct keeper_home *k)
{
    struct keeper_message text = {0};
    int fds[DESCRIPTORS_MAX];
    size_t count;
    ssize_t got = descriptors_receive(k->fd, &text, sizeof text, fds, &count, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
        return true;
    if (got == sizeof text && text.kept && count == 2) {
        keep(k, text.program, fds);
        return true;
    }
    descriptors_close(fds, count); // only one of the two arrived, because there was no room
    if (got == sizeof text && !text.kept)
        forget(k, text.program);
    return got > 0;
}

// The agent at the other end has ended.
static void close_socket(struct keeper_home *k)
{
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
}

void keeper_home_read(struct keeper_home *k)
{
    if (k->fd < 0)
        return;
    while (read_message(k))
        ;
    char byte;
    if (recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        close_socket(k);
}

int keeper_home_open(struct keeper_home *k)
{
    keeper_home_read(k); // reads the last messages of an agent that was killed
    close_socket(k);
    for (size_t i = 0; i < k->count; i++)
        k->kept[i].anew = false;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    int theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, CHILD_HIGH_FD);
    close(pair[1]);
    if (theirs < 0)
        close(pair[0]);
    else
        k->fd = pair[0];
    return theirs;
}

void keeper_home_settle(struct keeper_home *k)
{
    keeper_home_read(k);
    for (size_t i = 0; i < k->count;)
        if (k->kept[i].anew)
            i++;
        else
            drop(k, i);
}

void keeper_home_close(struct keeper_home *k)
{
    close_socket(k);
    while (k->count)
        drop(k, k->count - 1);
    free(k->kept);
    keeper_home_init(k);
}
