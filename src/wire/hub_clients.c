#include "wire/hub_clients.h"

#include "base/log.h"
#include "wire/forward.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct client {
    struct list_link link;
    struct hub_clients *clients;
    struct wire_forward *forward;
};

void hub_clients_init(struct hub_clients *c, struct wire_loop *loop,
                      const struct wire_settings *settings)
{
    *c = (struct hub_clients){.loop = loop, .settings = settings};
    list_init(&c->forwards);
}

static void forget(struct client *one)
{
    list_remove(&one->link);
    one->clients->count--;
    free(one);
}

static void on_ended(void *user, struct wire_forward *f, const char *why)
{
    (void)f;
    if (why)
        log_debug("a client of another node: %s", why);
    forget(user);
}

static void welcome(const struct hub_clients *c, struct wire_session *session)
{
    struct buf payload = {0};
    wire_welcome_write(&(struct wire_welcome){c->settings->heartbeat_ms, c->settings->dead_ms},
                       &payload);
    if (!payload.failed)
        wire_session_send(session, WIRE_WELCOME, 0, buf_str(&payload));
    buf_free(&payload);
}

static const char *refuse(struct hub_clients *c, const char *why)
{
    c->refused++;
    return why;
}

const char *hub_clients_add(struct hub_clients *c, struct wire_session *session)
{
    int pair[2];
    if (!c->take)
        return refuse(c, "no HTTP server runs here");
    if (c->count >= HUB_CLIENTS_MAX)
        return refuse(c, "too many clients of other nodes have connections to the HTTP server");
    struct client *one = calloc(1, sizeof *one);
    if (!one || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        free(one);
        return refuse(c, "the first node has no descriptor or memory for one more client");
    }
    one->clients = c;
    struct wire_forward_options o = {.loop = c->loop,
                                     .settings = c->settings,
                                     .heartbeat_ms = c->settings->heartbeat_ms,
                                     .dead_ms = c->settings->dead_ms,
                                     .ended = on_ended,
                                     .user = one};
    if (wire_forward_start(&o, session, pair[0], &one->forward) != 0) {
        close(pair[0]);
        close(pair[1]);
        free(one);
        return refuse(c, "the first node has no memory for one more client");
    }
    list_append(&c->forwards, &one->link);
    c->count++;
    c->taken++;
    welcome(c, session);
    c->take(c->user, pair[1]);
    return NULL;
}

void hub_clients_stop(struct hub_clients *c, const char *why)
{
    LIST_EACH (link, &c->forwards) {
        struct client *one = LIST_OF(link, struct client, link);
        wire_forward_stop(one->forward, why);
        forget(one);
    }
}
