#include "launch/supervisor.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/nodes.h"
#include "wire/collector_line.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// A signal that arrives later than this after the command's end is meant for the launcher, because
// no other process could have received it.
enum { HURRY_AFTER_MS = 500 };

int supervisor_start_agent(struct launch *l, struct error *e)
{
    struct child_command c;
    if (agent_process_command(&l->agent, &l->job, &c, e) < 0)
        return error_prefix(e, "the agent cannot work");
    child_command_add(&c, "--telemetry-level=%d", l->o->level);
    child_command_add(&c, "--rate=%.17g", l->o->rate_s);
    if (l->o->sources)
        child_command_add(&c, "--collect=%s", l->o->sources);
    char here[FOLDER_PATH_MAX];
    if (l->o->scripts && getcwd(here, sizeof here)) {
        child_command_add(&c, "--script-folder=%s", here);
        child_command_add(&c, "--script=%s", l->o->scripts);
    }
    child_command_add(&c, "--window=%.17g", l->o->window_s);
    child_command_add(&c, "--size-limit=%llu", (unsigned long long)l->o->size_limit_bytes);
    child_command_add(&c, "--agent-memory=%llu", (unsigned long long)l->o->agent_memory_bytes);
    child_command_add(&c, "--udp-port=%d", l->o->udp_port);
    if (l->o->verbose)
        child_command_add(&c, "--verbose");
    return agent_process_start(&l->agent, &c, e);
}

static void on_collector(struct launch *l, struct str collector_line)
{
    struct error e;
    if (agent_process_collect(&l->agent, collector_line, &e) < 0) {
        log_warning("%s", e.text);
        return;
    }
    nodes_tell_collector(l->nodes, collector_line.data);
}

static void on_aggregator_line(void *user, const char *line)
{
    struct launch *l = user;
    struct str rest = str_of(line), word = str_cut(&rest, ' ');
    if (nodes_gather_heard(l->nodes, line))
        return;
    if (str_eq(word, STR("reboot")))
        nodes_reboot(l->nodes, rest.data ? rest.data : "");
    else if (str_eq(word, STR(COLLECTOR_VERB)) && rest.data)
        on_collector(l, rest);
}

void supervisor_refuse_clients(struct launch *l, const struct child *c)
{
    if (c == &l->agent.child)
        agent_process_refuse(&l->agent);
    else
        aggregator_process_refuse(&l->aggregator);
}

int supervisor_start_aggregator(struct launch *l, struct error *e)
{
    struct aggregator_setup setup = {.options = l->o,
                                     .job = &l->job,
                                     .nodes = l->nodes,
                                     .agent_socket = l->agent.socket,
                                     .token_file = l->token_file,
                                     .key_file = l->key[0] ? l->key_file : NULL,
                                     .tls_cert = l->o->tls_cert ? l->tls_cert : NULL,
                                     .tls_key = l->o->tls_key ? l->tls_key : NULL};
    return aggregator_process_start(&l->aggregator, &setup, on_aggregator_line, l, e);
}

void supervisor_tell_aggregator(void *user, const char *verb, const char *host)
{
    struct launch *l = user;
    child_tell(&l->aggregator.child, "%s %s", verb, host);
}

void supervisor_tell_expected(struct launch *l)
{
    if (l->aggregator.child.state != CHILD_READY || !l->hub_port)
        return;
    nodes_leave(l->nodes, supervisor_tell_aggregator, l);
    nodes_tell_expected(l->nodes, false, supervisor_tell_aggregator, l);
}

// Handles "ready PORT HUBPORT": nodes can connect.
static void open_hub(struct launch *l)
{
    const char *second = strchr(l->aggregator.child.line, ' ');
    if (l->aggregator.child.state != CHILD_READY || !l->key[0] || !second)
        return;
    nodes_tell_expected(l->nodes, true, supervisor_tell_aggregator, l);
    if (l->hub_port == 0)
        nodes_tell_port(l->nodes, atoi(second + 1));
    l->hub_port = atoi(second + 1);
}

// Handles an unexpected end.
static void on_lost(struct launch *l, struct child *c,
                    int (*start)(struct launch *l, struct error *e))
{
    char how[64];
    child_status_text(c->status, how, sizeof how);
    if (child_refused(c)) {
        log_warning("the %s cannot work: %s; the command goes on without it", c->what,
                    c->line + strlen("error "));
        supervisor_refuse_clients(l, c);
        return;
    }
    if (!child_is_worth_it(c)) {
        log_warning(
            "the %s has ended again (%s) and is not started again; the command goes on without it",
            c->what, how);
        supervisor_refuse_clients(l, c);
        return;
    }
    log_warning("the %s has ended (%s); starting it again", c->what, how);
    struct error e;
    if (start(l, &e) < 0) {
        log_warning("%s; the command goes on without it", e.text);
        supervisor_refuse_clients(l, c);
    }
}

void supervisor_publish(struct launch *l)
{
    if (!l->up || l->aggregator.child.state != CHILD_READY)
        return;
    const char *host = l->o->listen;
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        host = l->job.host;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(l->job.url, sizeof l->job.url, "http%s://%s%.200s%s:%d", l->o->tls_cert ? "s" : "",
             v6 ? "[" : "", host, v6 ? "]" : "", atoi(l->aggregator.child.line));
    if (l->o->tls_cert)
        snprintf(l->job.certificate, sizeof l->job.certificate, "%s", l->tls_cert);
    nodes_tell_url(l->nodes, l->job.url);
    tunnel_target(&l->tunnel, l->o->listen, atoi(l->aggregator.child.line));
    struct error e;
    if (job_write(&l->job, l->job.folder, JOB_FILE, &e) < 0)
        log_warning("%s", e.text);
}

static uint64_t microseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void reap(struct launch *l)
{
    int status;
    pid_t pid;
    struct rusage used;
    while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &used)) > 0) {
        bool stopped = WIFSTOPPED(status);
        if (pid == l->command && stopped) {
            // Ctrl-Z: the launcher stops, too, because the shell waits for it. Without a terminal
            // nothing would continue it.
            int signal = WSTOPSIG(status),
                terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
            if (terminal >= 0)
                close(terminal);
            if (terminal >= 0 && (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU))
                kill(getpid(), SIGSTOP);
        } else if (pid == l->command) {
            l->command = 0;
            l->command_status = status;
            l->ended_ns = clock_monotonic_ns();
            l->ended_pid = pid;
            l->ended_us = microseconds(used.ru_utime) + microseconds(used.ru_stime);
            l->job.end_ns = clock_realtime_ns();
        } else if (!stopped && pid == l->agent.child.pid && child_runs(&l->agent.child)) {
            child_reaped(&l->agent.child, status);
            if (!l->agent.child.stopping)
                on_lost(l, &l->agent.child, supervisor_start_agent);
        } else if (!stopped && pid == l->aggregator.child.pid && child_runs(&l->aggregator.child)) {
            child_reaped(&l->aggregator.child, status);
            if (!l->aggregator.child.stopping)
                on_lost(l, &l->aggregator.child, supervisor_start_aggregator);
        } else if (!stopped && !tunnel_reaped(&l->tunnel, pid, status)) {
            nodes_reaped(l->nodes, pid, status);
        }
    }
}

static void on_signal(struct launch *l, int number, bool from_terminal)
{
    if (number == SIGCHLD) {
        reap(l);
    } else if (l->command > 0) {
        l->end_requested |= signals_ends(number);
        if (!from_terminal)
            kill(l->command, number);
    } else if (signals_ends(number)) {
        if (!l->ended_ns)
            l->interrupted = number;
        else if (clock_monotonic_ns() - l->ended_ns > (int64_t)HURRY_AFTER_MS * NS_PER_MS)
            l->hurry = true;
    }
}

void supervisor_turn(struct launch *l, int64_t deadline_ns)
{
    int timeout_ms = -1;
    int64_t tunnel_ns = tunnel_due_ns(&l->tunnel);
    if (tunnel_ns && (!deadline_ns || tunnel_ns < deadline_ns))
        deadline_ns = tunnel_ns;
    if (deadline_ns) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        timeout_ms = left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    }
    struct pollfd fds[] = {{.fd = l->signals.fd, .events = POLLIN},
                           {.fd = l->agent.child.control, .events = POLLIN},
                           {.fd = l->aggregator.child.control, .events = POLLIN},
                           {.fd = nodes_fd(l->nodes), .events = POLLIN},
                           {.fd = tunnel_fd(&l->tunnel), .events = POLLIN},
                           {.fd = l->agent.keeper.fd, .events = POLLIN}};
    int ready = poll(fds, sizeof fds / sizeof fds[0], timeout_ms);
    tunnel_turn(&l->tunnel);
    if (ready <= 0)
        return;
    if (fds[1].revents)
        agent_process_read(&l->agent);
    if (fds[2].revents) {
        bool was_ready = l->aggregator.child.state == CHILD_READY;
        child_read(&l->aggregator.child);
        if (!was_ready) {
            supervisor_publish(l);
            open_hub(l);
        }
    }
    if (fds[3].revents)
        nodes_turn(l->nodes);
    if (fds[5].revents)
        keeper_home_read(&l->agent.keeper);
    if (fds[2].revents || fds[3].revents)
        supervisor_tell_expected(l);
    bool from_terminal;
    for (int number = signals_next(&l->signals, &from_terminal); number;
         number = signals_next(&l->signals, &from_terminal))
        on_signal(l, number, from_terminal);
}
