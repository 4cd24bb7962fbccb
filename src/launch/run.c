#include "launch/run.h"

#include "aggregator/listen.h"
#include "aggregator/tokens.h"
#include "base/clock.h"
#include "base/log.h"
#include "launch/agent_socket.h"
#include "launch/attempt.h"
#include "launch/child.h"
#include "launch/command.h"
#include "launch/descendants.h"
#include "launch/folder.h"
#include "launch/job.h"
#include "launch/keeper.h"
#include "launch/nodes.h"
#include "launch/plain.h"
#include "launch/runs.h"
#include "launch/signals.h"
#include "launch/substitute.h"
#include "launch/summary.h"
#include "launch/sweep.h"
#include "launch/tunnel.h"
#include "launch/wanted.h"
#include "wire/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_BYTES = FOLDER_PATH_MAX + 128,
    // A signal that comes later than this after the command's end is meant for us: it has hit us alone.
    HURRY_AFTER_MS = 500,
    BASE_TRIES_MAX = 10,
    KILL_WAIT_MS = 2000,  // for a process that was killed to be gone
    KEEP_WAIT_MS = 30000, // for other nodes to bring their recordings to their places
    LOOK_MS = 50,         // between two looks at what has no event of its own
    LOOK_SELDOM_MS = 1000,
    NODE_ARGUMENTS_MAX = 8,
};

struct launch {
    const struct launch_options *o;
    struct job job;
    struct signals signals;
    int lock_fd;
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX]; // runs: empty unless the recording goes there
    char socket[PATH_BYTES], token_file[PATH_BYTES], hostfile[PATH_BYTES];
    char token[TOKEN_TEXT_MAX];
    char key_file[PATH_BYTES], key[2 * WIRE_KEY_BYTES + 1]; // of the hub; empty without other nodes
    int hub_port;                                           // 0: not known yet
    int agent_listening;                                    // for every agent (agent_socket.h); -1: none
    struct keeper_home keeper;
    int listening, hub_listening; // for every aggregator: their ports are ours as long as we run (listen.h); -1: none
    char tls_cert[FOLDER_PATH_MAX], tls_key[FOLDER_PATH_MAX]; // absolute: the aggregator goes to another folder
    struct child agent, aggregator;
    int agent_starts, aggregator_starts;
    int hostfile_fd; // where it is in memory; -1: it is a file
    bool up;         // the start is over: what is there can be named to others
    pid_t command;   // 0 before it starts and after it has ended
    int command_status;
    int64_t ended_ns; // CLOCK_MONOTONIC
    int interrupted;  // the signal that came before the command was started
    bool hurry;       // the user does not want to wait for the end of the agent
    bool end_asked;   // somebody wants the command to end: it is not started again
    bool unstarted;   // the command could not be forked, for `why`: we become it
    struct error why;
    struct nodes *nodes;
    struct wanted wanted;
    struct tunnel tunnel;
    char *node_arguments[NODE_ARGUMENTS_MAX + 1]; // owned: for the agents of other nodes
};

static int start_agent(struct launch *l, struct error *e);
static int start_aggregator(struct launch *l, struct error *e);

// ---------------------------------------------------------------- before the command: places

static int find_file(const char *path, char out[FOLDER_PATH_MAX], struct error *e)
{
    char *full = path ? realpath(path, NULL) : NULL;
    if (path && !full)
        return error_set(e, -errno, "cannot find %s: %s", path, strerror(errno));
    bool fits = !full || strlen(full) < FOLDER_PATH_MAX;
    snprintf(out, FOLDER_PATH_MAX, "%s", full && fits ? full : "");
    free(full);
    return fits ? 0 : error_set(e, -ENAMETOOLONG, "the path of %s is too long", path);
}

// Of a run, or a file (of a dump) where ours would be.
static bool holds_recording(const struct launch *l, const char *place)
{
    char file[PATH_BYTES + JOB_HOST_MAX];
    snprintf(file, sizeof file, "%s/%s.sonde", place, l->job.host);
    return runs_is_run(place) || access(file, F_OK) == 0;
}

// A folder that a recording can be written into, and that holds none.
static int check_record_place(const struct launch *l, const char *place, bool own, struct error *e)
{
    int status = folder_make_all(place, e);
    if (status == 0)
        status = folder_check_writable(place, e);
    if (status == 0 && own && holds_recording(l, place))
        status = error_set(e, -EEXIST, "%s holds a recording already", place);
    return status;
}

// The recording goes where --record says, else among the kept runs, else nowhere: the command does not wait for a place.
static int find_record_place(struct launch *l, struct error *e)
{
    struct error first = {0};
    if (l->o->no_record)
        return 0;
    if (l->o->record) {
        int status = runs_path(l->o->record, l->job.record, &first);
        if (status == 0)
            status = check_record_place(l, l->job.record, true, &first);
        if (status == 0)
            return 0;
        l->job.record[0] = 0;
    }
    int status = runs_path(l->o->runs, l->runs, e);
    if (status == 0)
        status = check_record_place(l, l->runs, false, e);
    if (status < 0)
        l->runs[0] = 0;
    if (l->o->nodes.strict && (l->o->record || status < 0)) {
        if (l->o->record)
            *e = first;
        error_prefix(e, "there is no place for the recording (--record DIR or --no-record changes it)");
        return -EROFS;
    }
    if (status < 0)
        log_warning("no recording is kept: %s; --record DIR or SONDE_RUNS names another place",
                    first.code ? first.text : e->text);
    else if (l->o->record)
        log_warning("%s: the recording goes to %s instead; --record DIR names another place", first.text, l->runs);
    return 0;
}

static int make_token(struct launch *l, struct error *e)
{
    const char *fixed = l->o->token_file;
    int rc = fixed ? token_read(fixed, true, l->token, e) : token_make(l->token, e);
    if (rc)
        return rc;
    char line[sizeof l->token + 1];
    snprintf(line, sizeof line, "%s\n", l->token);
    return folder_write(l->job.folder, "token", str_of(line), false, e);
}

static int make_key(struct launch *l, struct error *e)
{
    uint8_t key[WIRE_KEY_BYTES];
    snprintf(l->key_file, sizeof l->key_file, "%s/key", l->job.folder);
    int status = wire_key_make(l->key_file, key, e);
    for (size_t i = 0; i < sizeof key && status == 0; i++)
        snprintf(l->key + 2 * i, 3, "%02x", key[i]);
    explicit_bzero(key, sizeof key);
    return status;
}

static int make_run_folder(struct launch *l, struct error *e)
{
    job_choose_id(l->job.start_ns, l->job.id);
    int status = -ENOENT;
    // Another run that ends just now removes the base when it is empty: make it again.
    for (int tries = 0; status == -ENOENT && tries < BASE_TRIES_MAX; tries++) {
        int fd = folder_make_private(l->base, e);
        if (fd < 0)
            return fd;
        close(fd);
        status = job_make_folder(&l->job, l->base, l->runs[0] ? l->runs : NULL, &l->lock_fd, e);
    }
    if (status < 0)
        return status;
    if (l->runs[0])
        snprintf(l->job.record, sizeof l->job.record, "%.*s/%s", FOLDER_PATH_MAX - JOB_ID_MAX - 2, l->runs, l->job.id);
    snprintf(l->socket, sizeof l->socket, "%s/agent.sock", l->job.folder);
    snprintf(l->token_file, sizeof l->token_file, "%s/token", l->job.folder);
    snprintf(l->hostfile, sizeof l->hostfile, "%s/hostfile", l->job.folder);
    status = make_token(l, e);
    if (status == 0 && (l->o->open_hub || nodes_others(l->nodes)))
        status = make_key(l, e);
    if (status == 0)
        status = job_write(&l->job, l->job.folder, JOB_FILE, e);
    return status;
}

// ---------------------------------------------------------------- agent and aggregator

static int start_agent(struct launch *l, struct error *e)
{
    struct child_command c = {0};
    if (l->agent_starts++ == 0 && (l->agent_listening = agent_socket_open(l->socket, e)) < 0)
        return error_prefix(e, "the agent cannot work");
    child_command_add(&c, "sonde");
    child_command_add(&c, "agent");
    child_command_add(&c, "--folder=%s", l->job.folder);
    child_command_add(&c, "--socket=%s", l->socket);
    child_command_add(&c, "--listen-fd=%d", child_command_hand(&c, l->agent_listening));
    int keeper_fd = keeper_home_open(&l->keeper);
    if (keeper_fd >= 0)
        child_command_add(&c, "--keeper-fd=%d", child_command_hand(&c, keeper_fd));
    child_command_add(&c, "--host=%s", l->job.host);
    child_command_add(&c, "--job=%s", l->job.id);
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
    if (l->job.record[0])
        child_command_add(&c, "--overflow-folder=%s", l->job.record);
    child_command_add(&c, "--control-fd=%d", CHILD_CONTROL_FD);
    if (l->o->verbose)
        child_command_add(&c, "--verbose");
    int status = child_start(&l->agent, "agent", &c, e);
    if (keeper_fd >= 0)
        close(keeper_fd);
    child_command_free(&c);
    return status;
}

static void tell_agent(void *user, const char *wanted)
{
    struct launch *l = user;
    child_tell(&l->agent, COLLECTOR_VERB " %s", wanted);
}

static void on_collector(struct launch *l, struct str wanted)
{
    struct error e;
    int status = wanted_take(&l->wanted, wanted, &e);
    if (status < 0) {
        log_warning("%s", e.text);
        return;
    }
    if (l->agent.state == CHILD_READY)
        tell_agent(l, wanted.data);
    nodes_tell_collector(l->nodes, wanted.data);
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

// Above what a child finds its descriptors under.
static int move_up(struct listener *listener, int *out, struct error *e)
{
    int status = 0;
    *out = fcntl(listener->fd, F_DUPFD_CLOEXEC, CHILD_HIGH_FD);
    if (*out < 0)
        status = error_set(e, -errno, "cannot keep the port %d: %s", listener->port, strerror(errno));
    close(listener->fd);
    return status;
}

static int listen_for_aggregator(struct launch *l, struct error *e)
{
    struct listener listener;
    int status = listen_on(l->o->listen, l->o->port, false, false, &listener, e);
    if (status == 0)
        status = move_up(&listener, &l->listening, e);
    if (status == 0 && l->key[0])
        status = listen_for_nodes(nodes_address(l->nodes), &listener, e);
    if (status == 0 && l->key[0])
        status = move_up(&listener, &l->hub_listening, e);
    return status;
}

// The child will not be there any more: its clients are refused, and do not wait for it.
static void refuse_clients(struct launch *l, const struct child *c)
{
    if (c == &l->agent) {
        agent_socket_refuse(&l->agent_listening, l->socket);
        keeper_home_close(&l->keeper);
        return;
    }
    if (l->listening >= 0)
        listen_refuse(l->listening);
    if (l->hub_listening >= 0)
        listen_refuse(l->hub_listening);
}

static int start_aggregator(struct launch *l, struct error *e)
{
    struct child_command c = {0};
    if (l->aggregator_starts++ == 0) {
        int status = listen_for_aggregator(l, e);
        if (status < 0)
            return error_prefix(e, "the aggregator cannot work");
    }
    child_command_add(&c, "sonde");
    child_command_add(&c, "aggregator");
    child_command_add(&c, "--listen=%s", l->o->listen);
    child_command_add(&c, "--listen-fd=%d", child_command_hand(&c, l->listening));
    child_command_add(&c, "--token-file=%s", l->token_file);
    if (l->o->tls_cert)
        child_command_add(&c, "--tls-cert=%s", l->tls_cert);
    if (l->o->tls_key)
        child_command_add(&c, "--tls-key=%s", l->tls_key);
    child_command_add(&c, "--socket=%s", l->socket);
    child_command_add(&c, "--job=%s", l->job.id);
    child_command_add(&c, "--telemetry-level=%d", l->o->level);
    child_command_add(&c, "--control-fd=%d", CHILD_CONTROL_FD);
    child_command_add(&c, "--query-memory=%llu", (unsigned long long)l->o->query_memory_bytes);
    child_command_add(&c, "--aggregator-memory=%llu", (unsigned long long)l->o->aggregator_memory_bytes);
    child_command_add(&c, "--query-deadline=%g", l->o->query_deadline_s);
    child_command_add(&c, "--node-deadline=%g", l->o->node_deadline_s);
    child_command_add(&c, "--connections=%d", l->o->connections);
    if (l->o->cors)
        child_command_add(&c, "--cors-origin=%s", l->o->cors);
    child_command_add(&c, "--dragon-compatible=%s", l->o->dragon_compatible ? "true" : "false");
    if (l->o->dump_dir)
        child_command_add(&c, "--dump-dir=%s", l->o->dump_dir);
    if (l->o->dump_node)
        child_command_add(&c, "--dump-node=%s", l->o->dump_node);
    if (l->o->verbose)
        child_command_add(&c, "--verbose");
    if (nodes_restartable(l->nodes))
        child_command_add(&c, "--restarts");
    if (l->key[0]) {
        child_command_add(&c, "--key-file=%s", l->key_file);
        child_command_add(&c, "--host=%s", nodes_own_name(l->nodes));
        child_command_add(&c, "--transport=%s", l->o->nodes.transport);
        child_command_add(&c, "--hub-fd=%d", child_command_hand(&c, l->hub_listening));
        if (nodes_address(l->nodes))
            child_command_add(&c, "--hub-listen=%s", nodes_address(l->nodes));
    }
    child_command_add(&c, "--");
    child_command_add(&c, "%s", l->job.folder);
    int status = child_start(&l->aggregator, "aggregator", &c, e);
    l->aggregator.take = on_aggregator_line;
    l->aggregator.user = l;
    child_command_free(&c);
    return status;
}

static void tell_aggregator(void *user, const char *verb, const char *host)
{
    struct launch *l = user;
    child_tell(&l->aggregator, "%s %s", verb, host);
}

static void tell_expected_now(struct launch *l)
{
    if (l->aggregator.state != CHILD_READY || !l->hub_port)
        return;
    nodes_leave(l->nodes, tell_aggregator, l);
    nodes_tell_expected(l->nodes, false, tell_aggregator, l);
}

// "ready PORT HUBPORT": the nodes can come.
static void open_hub(struct launch *l)
{
    const char *second = strchr(l->aggregator.line, ' ');
    if (l->aggregator.state != CHILD_READY || !l->key[0] || !second)
        return;
    nodes_tell_expected(l->nodes, true, tell_aggregator, l);
    if (l->hub_port == 0)
        nodes_tell_port(l->nodes, atoi(second + 1));
    l->hub_port = atoi(second + 1);
}

// It ended although nobody asked it to.
static void on_lost(struct launch *l, struct child *c, int starts, int (*start)(struct launch *l, struct error *e))
{
    char how[64];
    child_status_text(c->status, how, sizeof how);
    if (child_refused(c)) {
        log_warning("the %s cannot work: %s; the command goes on without it", c->what, c->line + strlen("error "));
        refuse_clients(l, c);
        return;
    }
    if (starts > LAUNCH_RESTARTS_MAX) {
        log_warning("the %s has ended again (%s) and is not started any more; the command goes on without it", c->what,
                    how);
        refuse_clients(l, c);
        return;
    }
    log_warning("the %s has ended (%s); starting it again", c->what, how);
    struct error e;
    if (start(l, &e) < 0) {
        log_warning("%s; the command goes on without it", e.text);
        refuse_clients(l, c);
    }
}

// Where the aggregator can be reached goes into job.json: not before the agent is there, too, so that who finds the job finds all of it.
static void publish(struct launch *l)
{
    if (!l->up || l->aggregator.state != CHILD_READY)
        return;
    const char *host = l->o->listen;
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        host = l->job.host;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(l->job.url, sizeof l->job.url, "http%s://%s%.200s%s:%d", l->o->tls_cert ? "s" : "", v6 ? "[" : "", host,
             v6 ? "]" : "", atoi(l->aggregator.line));
    tunnel_target(&l->tunnel, l->o->listen, atoi(l->aggregator.line));
    struct error e;
    if (job_write(&l->job, l->job.folder, JOB_FILE, &e) < 0)
        log_warning("%s", e.text);
}

// ---------------------------------------------------------------- what happens

static void reap(struct launch *l)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        bool stopped = WIFSTOPPED(status);
        if (pid == l->command && stopped) {
            // Ctrl-Z: the shell waits for us, so we stop, too. Without a terminal nobody would wake us.
            int signal = WSTOPSIG(status), terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
            if (terminal >= 0)
                close(terminal);
            if (terminal >= 0 && (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU))
                kill(getpid(), SIGSTOP);
        } else if (pid == l->command) {
            l->command = 0;
            l->command_status = status;
            l->ended_ns = clock_monotonic_ns();
            l->job.end_ns = clock_realtime_ns();
        } else if (!stopped && pid == l->agent.pid && child_runs(&l->agent)) {
            child_reaped(&l->agent, status);
            if (!l->agent.stopping)
                on_lost(l, &l->agent, l->agent_starts, start_agent);
        } else if (!stopped && pid == l->aggregator.pid && child_runs(&l->aggregator)) {
            child_reaped(&l->aggregator, status);
            if (!l->aggregator.stopping)
                on_lost(l, &l->aggregator, l->aggregator_starts, start_aggregator);
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
        l->end_asked |= signals_ends(number);
        if (!from_terminal)
            kill(l->command, number);
    } else if (signals_ends(number)) {
        if (!l->ended_ns)
            l->interrupted = number;
        else if (clock_monotonic_ns() - l->ended_ns > (int64_t)HURRY_AFTER_MS * NS_PER_MS)
            l->hurry = true;
    }
}

// Waits for the next thing to happen, at most until deadline_ns (0 = for ever), and deals with it.
static void turn(struct launch *l, int64_t deadline_ns)
{
    int timeout_ms = -1;
    int64_t tunnel_ns = tunnel_due_ns(&l->tunnel);
    if (tunnel_ns && (!deadline_ns || tunnel_ns < deadline_ns))
        deadline_ns = tunnel_ns;
    if (deadline_ns) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        timeout_ms = left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    }
    struct pollfd fds[] = {
        {.fd = l->signals.fd, .events = POLLIN},         {.fd = l->agent.control, .events = POLLIN},
        {.fd = l->aggregator.control, .events = POLLIN}, {.fd = nodes_fd(l->nodes), .events = POLLIN},
        {.fd = tunnel_fd(&l->tunnel), .events = POLLIN}, {.fd = l->keeper.fd, .events = POLLIN}};
    int ready = poll(fds, sizeof fds / sizeof fds[0], timeout_ms);
    tunnel_turn(&l->tunnel);
    if (ready <= 0)
        return;
    if (fds[1].revents) {
        bool was_ready = l->agent.state == CHILD_READY;
        child_read(&l->agent);
        if (!was_ready && l->agent.state == CHILD_READY) {
            keeper_home_settle(&l->keeper);
            wanted_tell(&l->wanted, tell_agent, l);
        }
    }
    if (fds[2].revents) {
        bool was_ready = l->aggregator.state == CHILD_READY;
        child_read(&l->aggregator);
        if (!was_ready) {
            publish(l);
            open_hub(l);
        }
    }
    if (fds[3].revents)
        nodes_turn(l->nodes);
    if (fds[5].revents)
        keeper_home_read(&l->keeper);
    if (fds[2].revents || fds[3].revents)
        tell_expected_now(l);
    bool from_terminal;
    for (int number = signals_next(&l->signals, &from_terminal); number;
         number = signals_next(&l->signals, &from_terminal))
        on_signal(l, number, from_terminal);
}

// ---------------------------------------------------------------- the stages

static void add_node_argument(struct launch *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_node_argument(struct launch *l, const char *format, ...)
{
    size_t i = 0;
    while (i < NODE_ARGUMENTS_MAX && l->node_arguments[i])
        i++;
    va_list args;
    va_start(args, format);
    if (i < NODE_ARGUMENTS_MAX && vasprintf(&l->node_arguments[i], format, args) < 0)
        l->node_arguments[i] = NULL;
    va_end(args);
}

static void start_nodes(struct launch *l)
{
    add_node_argument(l, "--telemetry-level=%d", l->o->level);
    add_node_argument(l, "--rate=%.17g", l->o->rate_s);
    add_node_argument(l, "--window=%.17g", l->o->window_s);
    add_node_argument(l, "--size-limit=%llu", (unsigned long long)l->o->size_limit_bytes);
    add_node_argument(l, "--agent-memory=%llu", (unsigned long long)l->o->agent_memory_bytes);
    add_node_argument(l, "--udp-port=%d", l->o->udp_port);
    if (l->o->verbose)
        add_node_argument(l, "--verbose");
    struct error e;
    if (nodes_place(l->nodes, &l->job, l->token, l->key, (const char *const *)l->node_arguments, &l->wanted, &e) < 0)
        log_warning("%s; the other nodes are without telemetry", e.text);
}

static void start_telemetry(struct launch *l)
{
    struct error e;
    start_nodes(l);
    if (start_agent(l, &e) < 0) {
        log_warning("%s; the command runs without telemetry", e.text);
        refuse_clients(l, &l->agent);
    }
    if (start_aggregator(l, &e) < 0)
        log_warning("%s; nobody answers over HTTP", e.text);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)LAUNCH_START_TIMEOUT_MS * NS_PER_MS;
    while ((l->agent.state == CHILD_STARTING || l->aggregator.state == CHILD_STARTING) && !l->interrupted &&
           clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    while (nodes_starting(l->nodes) && !l->interrupted) // each has a deadline of its own
        turn(l, 0);
    l->up = true;
    publish(l);
    const struct child *both[] = {&l->agent, &l->aggregator};
    for (size_t i = 0; i < 2 && !l->interrupted; i++) {
        if (both[i]->state == CHILD_STARTING)
            log_warning("the %s is not ready after %d s; the command starts all the same", both[i]->what,
                        LAUNCH_START_TIMEOUT_MS / 1000);
    }
}

static void say_where(const struct launch *l)
{
    if (l->o->quiet || !l->job.url[0] || !(l->o->verbose || isatty(STDERR_FILENO)))
        return;
    // Not into the logs of batch jobs, which others may read.
    char view[TOKEN_TEXT_MAX];
    token_of_role(str_of(l->token), ROLE_VIEW, view);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "sonde: job %s: %s/?token=%s (sonde status shows it again; for Grafana: sonde token --url)\n",
                l->job.id, l->job.url, view);
    else
        fprintf(stderr,
                "sonde: job %s: %s (on %s, sonde status shows the address with a token, sonde token the token)\n",
                l->job.id, l->job.url, l->job.host);
    char line[TUNNEL_LINE_MAX];
    if (tunnel_needed() && tunnel_line(&l->job, line))
        fprintf(stderr, "sonde: to open it on another machine, there first: %s\n", line);
}

static void set_environment(const struct launch *l, struct command_environment *env)
{
    command_set(env, "SONDE_LEVEL", "%d", child_runs(&l->agent) ? l->o->level : 0);
    command_set(env, "SONDE_SOCKET", "%s", l->socket);
    command_set(env, "SONDE_URL", "%s", l->job.url);
    command_set(env, "SONDE_TOKEN_FILE", "%s", l->token_file);
    command_set(env, "SONDE_JOB", "%s", l->job.id);
    command_set(env, "SONDE_RUN_DIR", "%.*s", (int)(strrchr(l->base, '/') - l->base), l->base);
    if (l->o->tls_cert && !getenv("SONDE_CA")) // who asks over HTTPS trusts our own certificate
        command_set(env, "SONDE_CA", "%s", l->tls_cert);
    char config[FOLDER_PATH_MAX]; // the command may go to another folder
    if (l->o->config && realpath(l->o->config, config))
        command_set(env, "SONDE_CONFIG", "%s", config);
    command_set(env, "SONDE_NODELIST", "%s", nodes_list(l->nodes));
    command_set(env, "SONDE_HOSTFILE", "%s", l->hostfile);
    command_set(env, "SONDE_RESTART", "%d", nodes_restarts(l->nodes));
    if (l->o->open_hub)
        command_set(env, "SONDE_HUB", "%d", l->hub_port);
}

static bool is_telemetry(void *user, pid_t child)
{
    const struct launch *l = user;
    return child == l->agent.pid || child == l->aggregator.pid || child == tunnel_pid(&l->tunnel) ||
           nodes_owns(l->nodes, child);
}

// Ends the command and all that it has left running.
static void stop_command(struct launch *l)
{
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)(l->o->stop_timeout_s * NS_PER_S);
    size_t left = descendants_signal(SIGTERM, is_telemetry, l);
    while ((l->command > 0 || left > 0) && clock_monotonic_ns() < deadline_ns) {
        turn(l, clock_monotonic_ns() + (int64_t)LOOK_MS * NS_PER_MS);
        left = descendants_signal(0, is_telemetry, l);
    }
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while ((l->command > 0 || left > 0) && clock_monotonic_ns() < deadline_ns) {
        left = descendants_signal(SIGKILL, is_telemetry, l);
        turn(l, clock_monotonic_ns() + (int64_t)LOOK_MS * NS_PER_MS);
    }
}

static void use_hostfile_in_memory(struct launch *l)
{
    if (l->hostfile_fd >= 0)
        close(l->hostfile_fd);
    l->hostfile_fd = plain_hostfile(l->nodes, l->hostfile);
}

// Runs the command once, to its end. Returns the exit code.
static int run_attempt(struct launch *l)
{
    struct command_environment env = {0};
    struct error e;
    if (nodes_begin(l->nodes, &e) < 0) {
        log_warning("%s; the command finds its hostfile in memory", e.text);
        use_hostfile_in_memory(l);
    }
    tell_expected_now(l);
    if (nodes_restartable(l->nodes) && child_runs(&l->agent))
        attempt_annotate(l->socket, nodes_restarts(l->nodes), nodes_count(l->nodes));
    set_environment(l, &env);
    char **words = nodes_substitute(l->nodes, l->hostfile, l->o->command);
    l->ended_ns = 0;
    l->unstarted = !words;
    pid_t pid =
        words ? command_start(words, &env, &l->signals, &l->unstarted, &e) : error_set(&e, -ENOMEM, "out of memory");
    substitute_free(words);
    command_environment_free(&env);
    if (nodes_restarts(l->nodes) == 0)
        l->job.start_ns = clock_realtime_ns();
    if (pid < 0) {
        if (!l->unstarted)
            log_error("%s", e.text);
        else
            l->why = e;
        l->ended_ns = clock_monotonic_ns();
        l->job.end_ns = clock_realtime_ns();
        return command_failure_code(pid);
    }
    l->command = pid;
    while (l->command > 0 && nodes_pending(l->nodes) == RESTART_GO_ON)
        turn(l, 0);
    if (l->command > 0)
        stop_command(l);
    return command_exit_code(l->command_status);
}

// Runs the command as often as the rules want it. Returns the exit code.
static int run_command(struct launch *l)
{
    if (nodes_restartable(l->nodes))
        descendants_adopt();
    while (true) {
        int code = run_attempt(l);
        if (l->unstarted)
            return code;
        int64_t ended_ns = l->ended_ns;
        l->ended_ns = 0; // until it is over, a signal means that it shall be
        while (!l->end_asked && !l->interrupted && !nodes_command_ended(l->nodes, code, ended_ns))
            turn(l, clock_monotonic_ns() + (int64_t)LOOK_MS * NS_PER_MS);
        enum restart_verb verdict = l->end_asked || l->interrupted ? RESTART_OVER : nodes_verdict(l->nodes);
        if (verdict != RESTART_AGAIN) {
            l->ended_ns = ended_ns;
            return verdict == RESTART_GIVE_UP ? LAUNCH_GAVE_UP : code;
        }
        stop_command(l); // what it has left running
        while (nodes_starting(l->nodes) && !l->interrupted)
            turn(l, 0);
    }
}

// The other nodes have been asked to end; each ends its agent and brings its recording to its place.
static void stop_nodes(struct launch *l, int64_t began_ns)
{
    int64_t deadline_ns = began_ns + (int64_t)(l->o->stop_timeout_s * NS_PER_S) + (int64_t)KEEP_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && !l->hurry && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    if (nodes_running(l->nodes))
        nodes_kill(l->nodes);
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
}

// Other nodes close their files; what does not lie in a folder that we share with them is brought here, by the aggregator.
static void gather(struct launch *l)
{
    char words[160];
    if (!l->hub_port || l->aggregator.state != CHILD_READY)
        return;
    nodes_gather_begin(l->nodes);
    while (nodes_gather(l->nodes, tell_aggregator, l, words, sizeof words) && l->aggregator.state == CHILD_READY &&
           !l->hurry) {
        if (words[0])
            log_say("%s", words);
        turn(l, clock_monotonic_ns() + (int64_t)LOOK_SELDOM_MS * NS_PER_MS);
    }
}

static void stop_tunnel(struct launch *l)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    for (size_t i = 0; i < 2; i++) {
        int64_t deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
        tunnel_stop(&l->tunnel, signals[i]);
        while (tunnel_pid(&l->tunnel) && clock_monotonic_ns() < deadline_ns)
            turn(l, deadline_ns);
    }
}

static void stop_telemetry(struct launch *l, bool keep)
{
    agent_socket_close(&l->agent_listening);
    child_stop(&l->agent);
    if (keep)
        gather(l);
    int64_t began_ns = clock_monotonic_ns();
    nodes_stop(l->nodes);
    child_stop(&l->aggregator);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)(l->o->stop_timeout_s * NS_PER_S);
    while ((child_runs(&l->agent) || child_runs(&l->aggregator)) && !l->hurry && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    struct child *both[] = {&l->agent, &l->aggregator};
    for (size_t i = 0; i < 2; i++) {
        if (!child_runs(both[i]))
            continue;
        log_warning("the %s has not ended %s and is killed; what it had taken over is in its file", both[i]->what,
                    l->hurry ? "yet" : "in time");
        kill(both[i]->pid, SIGKILL);
    }
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while ((child_runs(&l->agent) || child_runs(&l->aggregator)) && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    stop_nodes(l, began_ns);
    stop_tunnel(l);
}

static void print_figure(const char *name, const struct summary_figure *figure, bool bytes)
{
    char mean[32], peak[32];
    if (bytes) {
        summary_bytes_text(figure->mean, mean, sizeof mean);
        summary_bytes_text(figure->peak, peak, sizeof peak);
    } else {
        snprintf(mean, sizeof mean, "%.1f %%", figure->mean);
        snprintf(peak, sizeof peak, "%.1f %%", figure->peak);
    }
    fprintf(stderr, "%s mean %s, peak %s", name, mean, peak);
}

static void print_summary(const struct launch *l, const struct summary *s)
{
    char duration[32];
    summary_duration_text(l->job.end_ns - l->job.start_ns, duration, sizeof duration);
    fprintf(stderr, "sonde: ran %s; %llu points in %llu series, %llu dropped", duration, (unsigned long long)s->points,
            (unsigned long long)s->series, (unsigned long long)s->dropped);
    if (s->retired)
        fprintf(stderr, "; the %llu oldest were removed (--size-limit, --window)", (unsigned long long)s->retired);
    if (s->damaged_blocks)
        fprintf(stderr, "; %llu blocks are damaged", (unsigned long long)s->damaged_blocks);
    fputc('\n', stderr);
    if (s->cpu_percent.count || s->memory_bytes.count) {
        char total[32];
        fprintf(stderr, "sonde: ");
        if (s->cpu_percent.count)
            print_figure("CPU", &s->cpu_percent, false);
        if (s->memory_bytes.count)
            print_figure(s->cpu_percent.count ? "; memory" : "memory", &s->memory_bytes, true);
        summary_bytes_text(s->memory_total_bytes, total, sizeof total);
        if (s->memory_bytes.count && s->memory_total_bytes > 0)
            fprintf(stderr, " of %s", total);
        fputc('\n', stderr);
    }
    if (l->job.exit_code != 0)
        fprintf(stderr, "sonde: exit code %d\n", l->job.exit_code);
}

static void print_where(const struct launch *l, const struct summary *s)
{
    const char *path = l->runs[0] ? l->job.id : l->job.record;
    log_say("recorded in %s", l->job.record);
    log_say("try: sonde query --list %s%s%s", path,
            s->cpu_percent.count ? "; sonde query 'avg:1s-avg:cpu_percent' " : "", s->cpu_percent.count ? path : "");
}

// Old recordings make room for the new one, and it is said which.
static void make_room(const struct launch *l)
{
    struct runs_removed removed = {0};
    struct error e;
    if (!l->runs[0])
        return;
    int status = runs_prune(l->runs, &l->o->runs_limits, clock_realtime_ns(), l->job.record, &removed, &e);
    char bytes[32], words[ERROR_TEXT_MAX];
    summary_bytes_text((double)removed.bytes, bytes, sizeof bytes);
    snprintf(words, sizeof words, "removed %zu recording%s, %s (--keep, --runs-size and --runs-age say what stays): %s",
             removed.count, removed.count == 1 ? "" : "s", bytes, buf_cstr(&removed.names));
    if (removed.worthy)
        log_warning("%s", words);
    else if (removed.count && !l->o->quiet)
        log_say("%s", words);
    buf_free(&removed.names);
    if (status < 0)
        log_warning("%s", e.text);
}

// What the run leaves behind: a summary, a recording, nothing else.
static void conclude(struct launch *l)
{
    struct summary summary = {0};
    struct error e;
    bool recorded = summary_add_folder(l->job.folder, &summary, &e) == 0;
    // What the programs of other nodes emitted is in their files.
    l->job.emitted = summary.emitted ? JOB_EMITTED : nodes_others(l->nodes) ? JOB_EMITTED_UNKNOWN : JOB_EMITTED_NOTHING;
    if (!l->o->quiet && recorded)
        print_summary(l, &summary);
    else if (!recorded)
        log_warning("%s", e.text);
    bool kept = true;
    if (l->job.record[0] && recorded) {
        kept = runs_keep(&l->job, l->job.folder, l->job.record, &e) == 0;
        if (!kept)
            log_error("the recording is not kept: %s; it is still in %s", e.text, l->job.folder);
        else if (!l->o->quiet)
            print_where(l, &summary);
    }
    nodes_report(l->nodes);
    if (kept && folder_remove(l->job.folder, &e) < 0)
        log_warning("%s", e.text);
    sweep_dead_jobs(l->base);
    make_room(l);
    rmdir(l->base); // when it was the last
}

static void remove_folders(const struct launch *l)
{
    folder_remove(l->job.folder, NULL);
    rmdir(l->base);
}

// What there is of telemetry ends; nothing of the run stays.
static void end_unused(struct launch *l)
{
    stop_telemetry(l, false);
    remove_folders(l);
}

// --strict: the command does not start unless all of telemetry did.
static int check_strict(const struct launch *l, struct error *e)
{
    const struct child *both[] = {&l->agent, &l->aggregator};
    for (size_t i = 0; i < 2 && l->o->nodes.strict; i++)
        if (both[i]->state != CHILD_READY)
            return error_set(e, -EAGAIN, "the %s does not run, and the run is --strict", both[i]->what);
    return nodes_check(l->nodes, e);
}

static int become_command(struct launch *l, struct error *e)
{
    signals_restore(&l->signals);
    return plain_run(l->o, l->nodes, e);
}

static int run_with_telemetry(struct launch *l, struct error *e)
{
    start_telemetry(l);
    if (l->interrupted) {
        end_unused(l);
        return LAUNCH_SIGNALLED + l->interrupted;
    }
    if (check_strict(l, e) < 0) {
        end_unused(l);
        return LAUNCH_FAILED;
    }
    say_where(l);
    l->job.exit_code = run_command(l);
    if (l->unstarted) { // what telemetry takes may be what the command lacks
        log_warning("%s; telemetry ends, so that the command can take this process", l->why.text);
        end_unused(l);
        return become_command(l, e);
    }
    stop_telemetry(l, true);
    l->job.agent_restarts = l->agent_starts > 0 ? l->agent_starts - 1 : 0;
    conclude(l);
    return l->job.exit_code;
}

// There is nowhere to put telemetry. The command runs all the same, by the rules of restarts where there are some.
static int run_without_telemetry(struct launch *l, struct error *e)
{
    if (l->o->nodes.strict)
        return LAUNCH_FAILED;
    log_warning("telemetry cannot start: %s; the command runs without it, and nothing is recorded; "
                "sonde doctor says what to mend",
                e->text);
    e->code = 0;
    if (!nodes_restartable(l->nodes))
        return become_command(l, e);
    use_hostfile_in_memory(l);
    int code = run_command(l);
    return l->unstarted ? become_command(l, e) : code;
}

// A wrong option is the user's to mend: nothing is started.
static int check_options(struct launch *l, struct error *e)
{
    int status = find_file(l->o->tls_cert, l->tls_cert, e);
    return status == 0 ? find_file(l->o->tls_key, l->tls_key, e) : status;
}

static int run_checked(struct launch *l, struct error *e)
{
    int status = folder_base_path(l->o->run_dir, l->base, e);
    if (status == 0)
        status = find_record_place(l, e);
    if (status == 0)
        status = make_run_folder(l, e);
    if (status == 0)
        return run_with_telemetry(l, e);
    if (l->job.folder[0])
        remove_folders(l);
    l->job.folder[0] = l->job.record[0] = l->socket[0] = l->token_file[0] = l->hostfile[0] = 0;
    return run_without_telemetry(l, e);
}

int launch_run(const struct launch_options *options, struct error *e)
{
    e->code = 0;
    if (options->level == 0)
        return plain_run(options, NULL, e);
    struct launch *l = calloc(1, sizeof *l);
    // First the signals: one that comes between the steps must not leave a folder behind.
    int status = l ? signals_open(&l->signals, e) : error_set(e, -ENOMEM, "out of memory");
    if (status < 0) {
        free(l);
        if (options->nodes.strict)
            return LAUNCH_FAILED;
        log_warning("telemetry cannot start: %s; the command runs without it, and nothing is recorded; "
                    "sonde doctor says what to mend",
                    e->text);
        return plain_run(options, NULL, e);
    }
    l->o = options;
    tunnel_init(&l->tunnel, options->tunnel_node, options->tunnel_port);
    l->lock_fd = l->agent.control = l->aggregator.control = l->hostfile_fd = -1;
    keeper_home_init(&l->keeper);
    l->agent_listening = l->listening = l->hub_listening = -1;
    l->agent.what = "agent";
    l->aggregator.what = "aggregator";
    l->job.start_ns = clock_realtime_ns();
    l->job.pid = getpid();
    l->job.level = options->level;
    l->job.rate_s = options->rate_s;
    l->job.exit_code = -1;
    l->job.keep = options->keep;
    l->job.command = job_command_text(options->command);
    job_host(l->job.host);
    status = nodes_find(&options->nodes, &l->job, &l->nodes, e);
    if (status == 0)
        status = check_options(l, e);
    int code = LAUNCH_WRONG_OPTION;
    if (status == 0)
        code = run_checked(l, e);
    else if (!l->nodes && status == -ENOMEM && !options->nodes.strict)
        code = become_command(l, e);
    signals_close(&l->signals);
    const int ours[] = {l->lock_fd, l->agent_listening, l->listening, l->hub_listening, l->hostfile_fd};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    keeper_home_close(&l->keeper);
    nodes_close(l->nodes);
    wanted_free(&l->wanted);
    for (size_t i = 0; i < NODE_ARGUMENTS_MAX; i++)
        free(l->node_arguments[i]);
    job_free(&l->job);
    free(l);
    return code;
}
