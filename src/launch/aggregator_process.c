#include "launch/aggregator_process.h"

#include "base/log.h"
#include "http/listen.h"
#include "launch/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void aggregator_process_init(struct aggregator_process *a)
{
    *a = (struct aggregator_process){.child = {.what = "aggregator", .control = -1},
                                     .listening = -1,
                                     .hub_listening = -1,
                                     .dragon_listening = -1};
}

// Moves the descriptor above the numbers at which a child expects its own.
static int move_up(struct listener *listener, int *out, struct error *e)
{
    int status = 0;
    *out = fcntl(listener->fd, F_DUPFD_CLOEXEC, CHILD_HIGH_FD);
    if (*out < 0)
        status =
            error_set(e, -errno, "cannot keep the port %d: %s", listener->port, strerror(errno));
    close(listener->fd);
    return status;
}

// Telemetry continues without this port: Dragon's own service may be using it.
static void open_dragon_port(struct aggregator_process *a, int port)
{
    struct error e = {0};
    struct listener listener;
    int status = listen_on("127.0.0.1", port, true, true, &listener, &e);
    if (status == 0)
        status = move_up(&listener, &a->dragon_listening, &e);
    if (status < 0)
        log_warning(
            "programs that import dragon.telemetry cannot write here: --tsdb-server-port %d: %s",
            port, strerror(-status));
}

static int open_ports(struct aggregator_process *a, const struct aggregator_setup *s,
                      struct error *e)
{
    struct listener listener;
    if (s->options->dragon_port) // before the HTTP server's socket, which may get any port
        open_dragon_port(a, s->options->dragon_port);
    int status = listen_on(s->options->listen, s->options->port, false, false, &listener, e);
    if (status == 0)
        status = move_up(&listener, &a->listening, e);
    if (status == 0 && s->key_file)
        status = listen_for_nodes(nodes_address(s->nodes), &listener, e);
    if (status == 0 && s->key_file)
        status = move_up(&listener, &a->hub_listening, e);
    return status;
}

int aggregator_process_start(struct aggregator_process *a, const struct aggregator_setup *s,
                             void (*take)(void *user, const char *line), void *user,
                             struct error *e)
{
    const struct launch_options *o = s->options;
    struct child_command c = {0};
    if (a->starts++ == 0) {
        int status = open_ports(a, s, e);
        if (status < 0)
            return error_prefix(e, "the aggregator cannot work");
    }
    child_command_add(&c, "sonde");
    child_command_add(&c, "aggregator");
    child_command_add(&c, "--listen=%s", o->listen);
    child_command_add(&c, "--listen-fd=%d", child_command_hand(&c, a->listening));
    child_command_add(&c, "--token-file=%s", s->token_file);
    if (s->tls_cert)
        child_command_add(&c, "--tls-cert=%s", s->tls_cert);
    if (s->tls_key)
        child_command_add(&c, "--tls-key=%s", s->tls_key);
    child_command_add(&c, "--socket=%s", s->agent_socket);
    child_command_add(&c, "--job=%s", s->job->id);
    child_command_add(&c, "--telemetry-level=%d", o->level);
    if (a->dragon_listening >= 0)
        child_command_add(&c, "--tsdb-fd=%d", child_command_hand(&c, a->dragon_listening));
    child_command_add(&c, "--window=%.17g", o->window_s);
    child_command_add(&c, "--control-fd=%d", CHILD_CONTROL_FD);
    child_command_add(&c, "--query-memory=%llu", (unsigned long long)o->query_memory_bytes);
    child_command_add(&c, "--aggregator-memory=%llu",
                      (unsigned long long)o->aggregator_memory_bytes);
    child_command_add(&c, "--query-deadline=%g", o->query_deadline_s);
    child_command_add(&c, "--node-deadline=%g", o->node_deadline_s);
    child_command_add(&c, "--connections=%d", o->connections);
    if (o->cors)
        child_command_add(&c, "--cors-origin=%s", o->cors);
    child_command_add(&c, "--dragon-compatible=%s", o->dragon_compatible ? "true" : "false");
    child_command_add(&c, "--view-without-token=%s", o->open_view ? "true" : "false");
    if (o->dump_dir)
        child_command_add(&c, "--dump-dir=%s", o->dump_dir);
    if (o->dump_node)
        child_command_add(&c, "--dump-node=%s", o->dump_node);
    if (o->verbose)
        child_command_add(&c, "--verbose");
    if (nodes_restartable(s->nodes))
        child_command_add(&c, "--restarts");
    if (s->key_file) {
        child_command_add(&c, "--key-file=%s", s->key_file);
        child_command_add(&c, "--host=%s", nodes_own_name(s->nodes));
        child_command_add(&c, "--transport=%s", o->nodes.transport);
        child_command_add(&c, "--hub-fd=%d", child_command_hand(&c, a->hub_listening));
        if (nodes_address(s->nodes))
            child_command_add(&c, "--hub-listen=%s", nodes_address(s->nodes));
    }
    child_command_add(&c, "--");
    child_command_add(&c, "%s", s->job->folder);
    int status = child_start(&a->child, "aggregator", &c, e);
    a->child.take = take;
    a->child.user = user;
    child_command_free(&c);
    return status;
}

void aggregator_process_refuse(struct aggregator_process *a)
{
    if (a->listening >= 0)
        listen_refuse(a->listening);
    if (a->hub_listening >= 0)
        listen_refuse(a->hub_listening);
    if (a->dragon_listening >= 0)
        listen_refuse(a->dragon_listening);
}

void aggregator_process_free(struct aggregator_process *a)
{
    if (a->listening >= 0)
        close(a->listening);
    if (a->hub_listening >= 0)
        close(a->hub_listening);
    if (a->dragon_listening >= 0)
        close(a->dragon_listening);
    a->listening = a->hub_listening = a->dragon_listening = -1;
}
