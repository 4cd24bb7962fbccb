#include "agent/keeper.h"

#include "base/descriptors.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static bool send_message(const struct keeper *k, const struct keeper_message *text,
                         const struct ingest_descriptors *fds)
{
    const int both[2] = {fds ? fds->segment : -1, fds ? fds->agent_area : -1};
    ssize_t sent;
    do
        sent = descriptors_send(k->fd, text, sizeof *text, both, fds ? 2 : 0,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static void say(struct keeper *k, const struct keeper_message *text,
                const struct ingest_descriptors *fds)
{
    if (k->fd < 0)
        return;
    bool taken = send_message(k, text, fds);
    if (!taken && errno == EAGAIN && !k->refuses) {
        struct pollfd room = {.fd = k->fd, .events = POLLOUT};
        taken = poll(&room, 1, KEEPER_WAIT_MS) > 0 && send_message(k, text, fds);
    }
    if (!taken)
        log_debug("the memory of a program is not kept for another agent: %s", strerror(errno));
    k->refuses = !taken;
}

void keeper_keep(void *user, uint64_t program, const struct ingest_descriptors *fds)
{
    say(user, &(struct keeper_message){.program = program, .kept = 1}, fds);
}

void keeper_forget(void *user, uint64_t program)
{
    say(user, &(struct keeper_message){.program = program}, NULL);
}
