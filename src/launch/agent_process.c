#include "launch/agent_process.h"

#include "launch/agent_socket.h"

#include <stdio.h>
#include <unistd.h>

void agent_process_init(struct agent_process *a)
{
    *a = (struct agent_process){.child = {.what = "agent", .control = -1}, .listening = -1};
    keeper_home_init(&a->keeper);
}

int agent_process_command(struct agent_process *a, const struct job *job, struct child_command *c,
                          struct error *e)
{
    *c = (struct child_command){0};
    snprintf(a->socket, sizeof a->socket, "%s/agent.sock", job->folder);
    // No program knows a socket that did not exist. A killed launcher leaves its socket.
    bool new_socket = false;
    if (a->starts++ == 0) {
        new_socket = access(a->socket, F_OK) != 0;
        a->listening = agent_socket_open(a->socket, e);
        if (a->listening < 0)
            return a->listening;
    }
    child_command_add(c, "sonde");
    child_command_add(c, "agent");
    child_command_add(c, "--folder=%s", job->folder);
    child_command_add(c, "--socket=%s", a->socket);
    child_command_add(c, "--listen-fd=%d", child_command_hand(c, a->listening));
    if (new_socket)
        child_command_add(c, "--new-socket");
    child_command_add(c, "--host=%s", job->host);
    child_command_add(c, "--job=%s", job->id);
    if (job->record[0])
        child_command_add(c, "--overflow-folder=%s", job->record);
    child_command_add(c, "--control-fd=%d", CHILD_CONTROL_FD);
    return 0;
}

int agent_process_start(struct agent_process *a, struct child_command *c, struct error *e)
{
    int keeper_fd = keeper_home_open(&a->keeper);
    if (keeper_fd >= 0)
        child_command_add(c, "--keeper-fd=%d", child_command_hand(c, keeper_fd));
    int status = child_start(&a->child, "agent", c, e);
    if (keeper_fd >= 0)
        close(keeper_fd);
    child_command_free(c);
    return status;
}

static void tell_collector(void *user, const char *collector_line)
{
    struct agent_process *a = user;
    child_tell(&a->child, COLLECTOR_VERB " %s", collector_line);
}

void agent_process_read(struct agent_process *a)
{
    bool was_ready = a->child.state == CHILD_READY;
    child_read(&a->child);
    if (was_ready || a->child.state != CHILD_READY)
        return;
    keeper_home_settle(&a->keeper);
    collector_requests_tell(&a->collectors, tell_collector, a);
}

int agent_process_collect(struct agent_process *a, struct str collector_line, struct error *e)
{
    int status = collector_requests_take(&a->collectors, collector_line, e);
    if (status == 0 && a->child.state == CHILD_READY)
        child_tell(&a->child, COLLECTOR_VERB " %.*s", STR_ARG(collector_line));
    return status;
}

void agent_process_stop(struct agent_process *a)
{
    agent_socket_close(&a->listening);
    child_stop(&a->child);
}

void agent_process_refuse(struct agent_process *a)
{
    agent_socket_refuse(&a->listening, a->socket);
    keeper_home_close(&a->keeper);
}

void agent_process_free(struct agent_process *a)
{
    agent_socket_close(&a->listening);
    keeper_home_close(&a->keeper);
    collector_requests_free(&a->collectors);
}
