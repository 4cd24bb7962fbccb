#include "forwarding.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/un.h>

void serve(void *user, int fd)
{
    struct way *w = user;
    pthread_mutex_lock(&w->lock);
    assert_true(w->count < SERVED_MAX);
    w->served[w->count++] = fd;
    pthread_mutex_unlock(&w->lock);
}

int served_count(struct way *w)
{
    pthread_mutex_lock(&w->lock);
    int count = w->count;
    pthread_mutex_unlock(&w->lock);
    return count;
}

static void write_refusal(const char *why, struct buf *out)
{
    buf_printf(out, "refused: %s\n", why);
}

void start_forwarder(struct way *w, const struct wire_settings *settings, int port)
{
    struct error e;
    struct wire_forwarder_options o = {.settings = *settings,
                                       .path = w->path,
                                       .host = STR("n2"),
                                       .hub_host = "127.0.0.1",
                                       .hub_port = port,
                                       .refusal = write_refusal};
    if (wire_forwarder_create(w->node_loop, &o, &w->forwarder, &e))
        fail_msg("%s", e.text);
}

struct way *way_begin(bool through_proxy)
{
    struct way *w = calloc(1, sizeof *w);
    strcpy(w->folder, "/tmp/sonde-wire-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/" WIRE_FORWARDER_SOCKET, w->folder);
    pthread_mutex_init(&w->lock, NULL);
    w->settings = net_settings();
    w->hub_loop = net_loop();
    w->node_loop = net_loop();
    w->hub = net_hub(w->hub_loop, &w->settings, "n1", false);
    hub_take_clients(w->hub, serve, w);
    w->proxy = through_proxy ? proxy_start(hub_port(w->hub)) : NULL;
    start_forwarder(w, &w->settings, w->proxy ? proxy_port(w->proxy) : hub_port(w->hub));
    return w;
}

void way_end(struct way *w)
{
    wire_forwarder_destroy(w->forwarder);
    assert_int_equal(access(w->path, F_OK), -1);
    hub_destroy(w->hub);
    if (w->proxy)
        proxy_stop(w->proxy);
    wire_loop_stop(w->node_loop);
    wire_loop_stop(w->hub_loop);
    for (int i = 0; i < w->count; i++)
        close(w->served[i]);
    pthread_mutex_destroy(&w->lock);
    assert_int_equal(rmdir(w->folder), 0);
    free(w);
}

int try_connect(const struct way *w)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

void wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, (int)(NET_PATIENCE_NS / NS_PER_MS)) != 1)
        fail_msg("nothing comes");
}

int connect_in(struct way *w, int *server)
{
    int before = served_count(w), fd = try_connect(w);
    assert_true(fd >= 0);
    NET_AWAIT(served_count(w) == before + 1);
    *server = w->served[before];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}
