#include "launch/launcher.h"

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "http/tokens.h"
#include "launch/about.h"
#include "launch/agent_process.h"
#include "launch/aggregator_process.h"
#include "launch/attempt.h"
#include "launch/command.h"
#include "launch/conclusion.h"
#include "launch/descendants.h"
#include "launch/folder.h"
#include "launch/job.h"
#include "launch/nodes.h"
#include "launch/plain.h"
#include "launch/record_place.h"
#include "launch/signals.h"
#include "launch/substitute.h"
#include "launch/tunnel.h"
#include "wire/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_BYTES = FOLDER_PATH_MAX + 128,
    // A signal that comes later than this after the command's end is meant for us: it has hit us
    // alone.
    HURRY_AFTER_MS = 500,
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
    // runs: empty unless the recording goes there
    char base[FOLDER_PATH_MAX], runs[FOLDER_PATH_MAX];
    char token_file[PATH_BYTES], hostfile[PATH_BYTES];
    char token[TOKEN_TEXT_MAX];
    // of the hub; empty without other nodes
    char key_file[PATH_BYTES], key[2 * WIRE_KEY_BYTES + 1];
    int hub_port; // 0: not known yet
    // absolute: the aggregator goes to another folder
    char tls_cert[FOLDER_PATH_MAX], tls_key[FOLDER_PATH_MAX];
    struct agent_process agent;
    struct aggregator_process aggregator;
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

static int make_token(struct launch *l, struct error *e)
{
    const char *fixed = l->o->token_file;
    bool keyed = !fixed && l->o->auth_key[0];
    int rc = fixed ? token_read(fixed, true, l->token, e) : keyed ? 0 : token_make(l->token, e);
    if (rc)
        return rc;
    if (keyed)
        snprintf(l->token, sizeof l->token, "%s", l->o->auth_key);
    char line[sizeof l->token + 1];
    snprintf(line, sizeof line, "%s\n", l->token);
    return folder_write(l->job.folder, "token", str_of(line), e);
}

static int make_key(struct launch *l, struct error *e)
{
    uint8_t key[WIRE_KEY_BYTES];
    snprintf(l->key_file, sizeof l->key_file, "%s/key", l->job.folder);
    int status = wire_key_make(l->key_file, key, e);
    if (status == 0)
        hex_write(key, sizeof key, l->key);
    explicit_bzero(key, sizeof key);
    return status;
}

static int make_run_folder(struct launch *l, struct error *e)
{
    job_choose_id(l->job.start_ns, l->job.id);
    int fd = folder_make_private(l->base, e);
    if (fd < 0)
        return fd;
    close(fd);
    int status = job_make_folder(&l->job, l->base, l->runs[0] ? l->runs : NULL, &l->lock_fd, e);
    if (status < 0)
        return status;
    if (l->runs[0])
        snprintf(l->job.record, sizeof l->job.record, "%.*s/%s", FOLDER_PATH_MAX - JOB_ID_MAX - 2,
                 l->runs, l->job.id);
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

static void on_collector(struct launch *l, struct str wanted)
{
    struct error e;
    if (agent_process_collect(&l->agent, wanted, &e) < 0) {
        log_warning("%s", e.text);
        return;
    }
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

// The child will not be there any more: its clients are refused, and do not wait for it.
static void refuse_clients(struct launch *l, const struct child *c)
{
    if (c == &l->agent.child)
        agent_process_refuse(&l->agent);
    else
        aggregator_process_refuse(&l->aggregator);
}

static int start_aggregator(struct launch *l, struct error *e)
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

static void tell_aggregator(void *user, const char *verb, const char *host)
{
    struct launch *l = user;
    child_tell(&l->aggregator.child, "%s %s", verb, host);
}

static void tell_expected_now(struct launch *l)
{
    if (l->aggregator.child.state != CHILD_READY || !l->hub_port)
        return;
    nodes_leave(l->nodes, tell_aggregator, l);
    nodes_tell_expected(l->nodes, false, tell_aggregator, l);
}

// "ready PORT HUBPORT": the nodes can come.
static void open_hub(struct launch *l)
{
    const char *second = strchr(l->aggregator.child.line, ' ');
    if (l->aggregator.child.state != CHILD_READY || !l->key[0] || !second)
        return;
    nodes_tell_expected(l->nodes, true, tell_aggregator, l);
    if (l->hub_port == 0)
        nodes_tell_port(l->nodes, atoi(second + 1));
    l->hub_port = atoi(second + 1);
}

// It ended although nobody asked it to.
static void on_lost(struct launch *l, struct child *c,
                    int (*start)(struct launch *l, struct error *e))
{
    char how[64];
    child_status_text(c->status, how, sizeof how);
    if (child_refused(c)) {
        log_warning("the %s cannot work: %s; the command goes on without it", c->what,
                    c->line + strlen("error "));
        refuse_clients(l, c);
        return;
    }
    if (!child_is_worth_it(c)) {
        log_warning(
            "the %s has ended again (%s) and is not started again; the command goes on without it",
            c->what, how);
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

// Where the aggregator can be reached goes into job.json: not before the agent is there, too, so
// that who finds the job finds all of it.
static void publish(struct launch *l)
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

// ---------------------------------------------------------------- what happens

static void reap(struct launch *l)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        bool stopped = WIFSTOPPED(status);
        if (pid == l->command && stopped) {
            // Ctrl-Z: the shell waits for us, so we stop, too. Without a terminal nobody would wake
            // us.
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
            l->job.end_ns = clock_realtime_ns();
        } else if (!stopped && pid == l->agent.child.pid && child_runs(&l->agent.child)) {
            child_reaped(&l->agent.child, status);
            if (!l->agent.child.stopping)
                on_lost(l, &l->agent.child, start_agent);
        } else if (!stopped && pid == l->aggregator.child.pid && child_runs(&l->aggregator.child)) {
            child_reaped(&l->aggregator.child, status);
            if (!l->aggregator.child.stopping)
                on_lost(l, &l->aggregator.child, start_aggregator);
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
            publish(l);
            open_hub(l);
        }
    }
    if (fds[3].revents)
        nodes_turn(l->nodes);
    if (fds[5].revents)
        keeper_home_read(&l->agent.keeper);
    if (fds[2].revents || fds[3].revents)
        tell_expected_now(l);
    bool from_terminal;
    for (int number = signals_next(&l->signals, &from_terminal); number;
         number = signals_next(&l->signals, &from_terminal))
        on_signal(l, number, from_terminal);
}

// ---------------------------------------------------------------- the stages

static void add_node_argument(struct launch *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
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
    const char *const *arguments = (const char *const *)l->node_arguments;
    if (nodes_place(l->nodes, &l->job, l->token, l->key, arguments, &l->agent.wanted, &e) < 0)
        log_warning("%s; the other nodes are without telemetry", e.text);
}

static void start_telemetry(struct launch *l)
{
    struct error e;
    start_nodes(l);
    if (start_agent(l, &e) < 0) {
        log_warning("%s; the command runs without telemetry", e.text);
        refuse_clients(l, &l->agent.child);
    }
    if (start_aggregator(l, &e) < 0)
        log_warning("%s; there is no HTTP server", e.text);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)LAUNCH_START_TIMEOUT_MS * NS_PER_MS;
    while (
        (l->agent.child.state == CHILD_STARTING || l->aggregator.child.state == CHILD_STARTING) &&
        !l->interrupted && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    while (nodes_starting(l->nodes) && !l->interrupted) // each has a deadline of its own
        turn(l, 0);
    l->up = true;
    publish(l);
    const struct child *both[] = {&l->agent.child, &l->aggregator.child};
    for (size_t i = 0; i < 2 && !l->interrupted; i++) {
        if (both[i]->state == CHILD_STARTING)
            log_warning("the %s is not ready after %d s; the command starts all the same",
                        both[i]->what, LAUNCH_START_TIMEOUT_MS / 1000);
    }
}

static void say_where(const struct launch *l)
{
    if (l->o->quiet || !l->job.url[0])
        return;
    if (!l->o->verbose && !isatty(STDERR_FILENO)) {
        fprintf(stderr, "sonde: job %s: sonde open %s shows its page\n", l->job.id, l->job.id);
        return;
    }
    // Not into the logs of batch jobs, which others may read.
    char view[TOKEN_TEXT_MAX];
    token_of_role(str_of(l->token), ROLE_VIEW, view);
    if (isatty(STDERR_FILENO))
        fprintf(stderr,
                "sonde: job %s: %s/?token=%s (sonde status shows it again; for Grafana: sonde "
                "token --url)\n",
                l->job.id, l->job.url, view);
    else
        fprintf(stderr,
                "sonde: job %s: %s (on %s, sonde status shows the address with a token, sonde "
                "token the token)\n",
                l->job.id, l->job.url, l->job.host);
    char line[TUNNEL_LINE_MAX];
    if (tunnel_needed() && tunnel_line(&l->job, line))
        fprintf(stderr, "sonde: to open it on another machine, there first: %s\n", line);
}

static void set_environment(const struct launch *l, struct command_environment *env)
{
    command_set(env, "SONDE_LEVEL", "%d", child_runs(&l->agent.child) ? l->o->level : 0);
    command_set(env, "SONDE_SOCKET", "%s", l->agent.socket);
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
    if (l->o->dragon_port || l->o->dragon_compatible)
        command_set(env, "DRAGON_TELEMETRY_LEVEL", "%d",
                    child_runs(&l->agent.child) ? l->o->level : 0);
    if (nodes_restarts(l->nodes) > 0) // what Dragon's programs look at
        command_set(env, "DRAGON_RESILIENT_RESTART", "1");
    if (l->o->open_hub)
        command_set(env, "SONDE_HUB", "%d", l->hub_port);
}

static bool is_telemetry(void *user, pid_t child)
{
    const struct launch *l = user;
    return child == l->agent.child.pid || child == l->aggregator.child.pid ||
           child == tunnel_pid(&l->tunnel) || nodes_owns(l->nodes, child);
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
    if (nodes_restartable(l->nodes) && child_runs(&l->agent.child))
        attempt_annotate(l->agent.socket, nodes_restarts(l->nodes), nodes_count(l->nodes));
    set_environment(l, &env);
    char **words = nodes_substitute(l->nodes, l->hostfile, l->o->command);
    l->ended_ns = 0;
    l->unstarted = !words;
    pid_t pid = words ? command_start(words, &env, &l->signals, &l->unstarted, &e)
                      : error_set(&e, -ENOMEM, "out of memory");
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
        enum restart_verb verdict =
            l->end_asked || l->interrupted ? RESTART_OVER : nodes_verdict(l->nodes);
        if (verdict != RESTART_AGAIN) {
            l->ended_ns = ended_ns;
            return verdict == RESTART_GIVE_UP ? LAUNCH_GAVE_UP : code;
        }
        stop_command(l); // what it has left running
        while (nodes_starting(l->nodes) && !l->interrupted)
            turn(l, 0);
    }
}

// The other nodes have been asked to end; each ends its agent and brings its recording to its
// place.
static void stop_nodes(struct launch *l, int64_t began_ns)
{
    int64_t deadline_ns =
        began_ns + (int64_t)(l->o->stop_timeout_s * NS_PER_S) + (int64_t)KEEP_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && !l->hurry && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    if (nodes_running(l->nodes))
        nodes_kill(l->nodes);
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
}

// Other nodes close their files; what does not lie in a folder that we share with them is brought
// here, by the aggregator.
static void gather(struct launch *l)
{
    char words[160];
    if (!l->hub_port || l->aggregator.child.state != CHILD_READY)
        return;
    nodes_gather_begin(l->nodes);
    while (nodes_gather(l->nodes, tell_aggregator, l, words, sizeof words) &&
           l->aggregator.child.state == CHILD_READY && !l->hurry) {
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
    agent_process_stop(&l->agent);
    if (keep)
        gather(l);
    int64_t began_ns = clock_monotonic_ns();
    nodes_stop(l->nodes);
    child_stop(&l->aggregator.child);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)(l->o->stop_timeout_s * NS_PER_S);
    while ((child_runs(&l->agent.child) || child_runs(&l->aggregator.child)) && !l->hurry &&
           clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    struct child *both[] = {&l->agent.child, &l->aggregator.child};
    for (size_t i = 0; i < 2; i++) {
        if (!child_runs(both[i]))
            continue;
        log_warning(
            "the %s has not ended %s and is killed; the data that it had taken are in its file",
            both[i]->what, l->hurry ? "yet" : "in time");
        kill(both[i]->pid, SIGKILL);
    }
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while ((child_runs(&l->agent.child) || child_runs(&l->aggregator.child)) &&
           clock_monotonic_ns() < deadline_ns)
        turn(l, deadline_ns);
    stop_nodes(l, began_ns);
    stop_tunnel(l);
}

// What there is of telemetry ends; nothing of the run stays.
static void end_unused(struct launch *l)
{
    stop_telemetry(l, false);
    folder_remove(l->job.folder, NULL);
}

// --strict: the command does not start unless all of telemetry did.
static int check_strict(const struct launch *l, struct error *e)
{
    const struct child *both[] = {&l->agent.child, &l->aggregator.child};
    for (size_t i = 0; i < 2 && l->o->nodes.strict; i++)
        if (both[i]->state != CHILD_READY)
            return error_set(e, -EAGAIN, "the %s does not run, and the run is --strict",
                             both[i]->what);
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
    l->job.agent_restarts = l->agent.starts > 0 ? l->agent.starts - 1 : 0;
    conclusion(&l->job, l->o, l->nodes, l->base, l->runs);
    return l->job.exit_code;
}

// There is nowhere to put telemetry. The command runs all the same, by the rules of restarts where
// there are some.
static int run_without_telemetry(struct launch *l, struct error *e)
{
    if (l->o->nodes.strict)
        return LAUNCH_FAILED;
    log_warning("telemetry cannot start: %s; the command runs without it, and nothing is recorded; "
                "sonde doctor says what to repair",
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
        status = record_place_find(l->o, &l->job, l->runs, e);
    if (status == 0)
        status = make_run_folder(l, e);
    if (status == 0)
        return run_with_telemetry(l, e);
    if (l->job.folder[0])
        folder_remove(l->job.folder, NULL);
    l->job.folder[0] = l->job.record[0] = l->token_file[0] = l->hostfile[0] = 0;
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
        log_warning(
            "telemetry cannot start: %s; the command runs without it, and nothing is recorded; "
            "sonde doctor says what to repair",
            e->text);
        return plain_run(options, NULL, e);
    }
    l->o = options;
    tunnel_init(&l->tunnel, options->tunnel_node, options->tunnel_port);
    l->lock_fd = l->hostfile_fd = -1;
    agent_process_init(&l->agent);
    aggregator_process_init(&l->aggregator);
    l->job.start_ns = clock_realtime_ns();
    l->job.pid = getpid();
    l->job.level = options->level;
    l->job.rate_s = options->rate_s;
    l->job.exit_code = -1;
    l->job.keep = options->keep;
    l->job.command = options->title ? strdup(options->title) : job_command_text(options->command);
    job_host(l->job.host);
    status = nodes_find(&options->nodes, &l->job, &l->nodes, e);
    l->job.about = about_run(options->name, options->note, options->tags);
    if (status == 0)
        json_object_set_new(l->job.about, "nodes", json_integer((json_int_t)nodes_count(l->nodes)));
    if (status == 0)
        status = check_options(l, e);
    int code = LAUNCH_WRONG_OPTION;
    if (status == 0)
        code = run_checked(l, e);
    else if (!l->nodes && status == -ENOMEM && !options->nodes.strict)
        code = become_command(l, e);
    signals_close(&l->signals);
    const int ours[] = {l->lock_fd, l->hostfile_fd};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    nodes_close(l->nodes);
    agent_process_free(&l->agent);
    aggregator_process_free(&l->aggregator);
    for (size_t i = 0; i < NODE_ARGUMENTS_MAX; i++)
        free(l->node_arguments[i]);
    job_free(&l->job);
    free(l);
    return code;
}
