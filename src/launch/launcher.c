#include "launch/launcher.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/attempt.h"
#include "launch/command.h"
#include "launch/conclusion.h"
#include "launch/descendants.h"
#include "launch/folder.h"
#include "launch/launch.h"
#include "launch/launch_folder.h"
#include "launch/plain.h"
#include "launch/record_place.h"
#include "launch/run_metadata.h"
#include "launch/shared_memory.h"
#include "launch/shutdown.h"
#include "launch/substitute.h"
#include "launch/supervisor.h"
#include "launch/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    if (nodes_place(l->nodes, &l->job, l->token, l->key, arguments, &l->agent.collectors, &e) < 0)
        log_warning("%s; the other nodes are without telemetry", e.text);
}

static void start_telemetry(struct launch *l)
{
    struct error e;
    start_nodes(l);
    if (shared_memory_check(&e) < 0)
        log_warning("%s", e.text);
    if (supervisor_start_agent(l, &e) < 0) {
        log_warning("%s; the command runs without telemetry", e.text);
        supervisor_refuse_clients(l, &l->agent.child);
    }
    if (supervisor_start_aggregator(l, &e) < 0)
        log_warning("%s; there is no HTTP server", e.text);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)LAUNCH_START_TIMEOUT_MS * NS_PER_MS;
    while (
        (l->agent.child.state == CHILD_STARTING || l->aggregator.child.state == CHILD_STARTING) &&
        !l->interrupted && clock_monotonic_ns() < deadline_ns)
        supervisor_turn(l, deadline_ns);
    // bounded: each start has a deadline of its own
    while (nodes_starting(l->nodes) && !l->interrupted)
        supervisor_turn(l, 0);
    l->up = true;
    supervisor_publish(l);
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
    // The address with the token stays out of the logs of batch jobs, which other users may be able
    // to read.
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
    if (l->o->tls_cert &&
        !getenv("SONDE_CA")) // so that HTTPS clients of the command trust our own certificate
        command_set(env, "SONDE_CA", "%s", l->tls_cert);
    char config[FOLDER_PATH_MAX]; // absolute: the command may change its folder
    if (l->o->config && realpath(l->o->config, config))
        command_set(env, "SONDE_CONFIG", "%s", config);
    command_set(env, "SONDE_NODELIST", "%s", nodes_list(l->nodes));
    command_set(env, "SONDE_HOSTFILE", "%s", l->hostfile);
    command_set(env, "SONDE_RESTART", "%d", nodes_restarts(l->nodes));
    if (l->o->dragon_port || l->o->dragon_compatible)
        command_set(env, "DRAGON_TELEMETRY_LEVEL", "%d",
                    child_runs(&l->agent.child) ? l->o->level : 0);
    if (nodes_restarts(l->nodes) > 0) // Dragon's programs read this variable
        command_set(env, "DRAGON_RESILIENT_RESTART", "1");
    if (child_runs(&l->agent.child))
        trace_set(l->o->trace, l->o->trace_python, env);
    if (l->o->open_hub)
        command_set(env, "SONDE_HUB", "%d", l->hub_port);
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
    supervisor_tell_expected(l);
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
        supervisor_turn(l, 0);
    if (l->command > 0)
        shutdown_command(l);
    return command_exit_code(l->command_status);
}

// Runs the command, and starts it again under the rules of restarts. Returns the exit code.
static int run_command(struct launch *l)
{
    if (nodes_restartable(l->nodes))
        descendants_adopt();
    while (true) {
        int code = run_attempt(l);
        if (l->unstarted)
            return code;
        int64_t ended_ns = l->ended_ns;
        l->ended_ns = 0; // while the command runs, a signal asks it to end
        while (!l->end_requested && !l->interrupted &&
               !nodes_command_ended(l->nodes, code, ended_ns))
            supervisor_turn(l, clock_monotonic_ns() + (int64_t)LAUNCH_LOOK_MS * NS_PER_MS);
        enum restart_verb verdict =
            l->end_requested || l->interrupted ? RESTART_OVER : nodes_verdict(l->nodes);
        if (verdict != RESTART_AGAIN) {
            l->ended_ns = ended_ns;
            return verdict == RESTART_GIVE_UP ? LAUNCH_GAVE_UP : code;
        }
        shutdown_command(l); // ends the processes that the command has left running
        while (nodes_starting(l->nodes) && !l->interrupted)
            supervisor_turn(l, 0);
    }
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
        shutdown_unused(l);
        return LAUNCH_SIGNALLED + l->interrupted;
    }
    if (check_strict(l, e) < 0) {
        shutdown_unused(l);
        return LAUNCH_FAILED;
    }
    say_where(l);
    trace_warn(l->o->trace, l->o->command);
    l->job.exit_code = run_command(l);
    if (l->unstarted) { // telemetry may hold the resources that the command needs
        log_warning("%s; telemetry ends, so that the command can take this process", l->why.text);
        shutdown_unused(l);
        return become_command(l, e);
    }
    shutdown_telemetry(l, true);
    l->job.agent_restarts = l->agent.starts > 0 ? l->agent.starts - 1 : 0;
    conclusion(&l->job, l->o, l->nodes, l->base, l->runs);
    return l->job.exit_code;
}

// Called if there is no place for telemetry. The command runs all the same, under the rules of
// restarts if there are any.
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

static int run_checked(struct launch *l, struct error *e)
{
    int status = folder_base_path(l->o->run_dir, l->base, e);
    if (status == 0)
        status = record_place_find(l->o, &l->job, l->runs, e);
    if (status == 0)
        status = launch_folder_make(l, e);
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
    // Signals come first: a signal between the steps must not leave a folder behind.
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
    l->job.about = run_metadata_run(options->name, options->note, options->tags);
    if (status == 0)
        json_object_set_new(l->job.about, "nodes", json_integer((json_int_t)nodes_count(l->nodes)));
    if (status == 0)
        status = launch_folder_find_tls(l, e);
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
