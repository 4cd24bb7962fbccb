#include "launch/node.h"

#include "ask/copy_wire.h"
#include "base/clock.h"
#include "base/log.h"
#include "launch/agent_process.h"
#include "launch/codes.h"
#include "launch/job.h"
#include "launch/node_input.h"
#include "launch/runs.h"
#include "launch/signals.h"
#include "launch/sweep.h"
#include "wire/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_WAIT_MS = 2000, // for a killed agent to end
};

struct node {
    struct job job;
    struct node_input input;
    bool ending;
    int64_t last_input_ns, beaten_ns;
    struct signals signals;
    struct agent_process agent;
    struct child relay;
    int lock_fd;
    bool relay_refused; // the relay cannot work here
    bool ready, hub_reported;
    bool finishing, closed, dropped;
    int64_t finish_ns;
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    struct buf line = {0};
    va_list args;
    va_start(args, format);
    buf_add_str(&line, STR(NODE_PREFIX));
    buf_vprintf(&line, format, args);
    va_end(args);
    buf_add_char(&line, '\n');
    // A launcher that has gone has also closed our standard input.
    if (!line.failed && write(STDOUT_FILENO, line.data, line.size) < 0)
        log_debug("no process reads the messages of this node: %s", strerror(errno));
    buf_free(&line);
}

// ---------------------------------------------------------------- lines from the launcher

static void write_hostfile(const struct node *n, struct str hosts)
{
    struct buf text = {0};
    while (hosts.data) {
        buf_add_str(&text, str_cut(&hosts, ','));
        buf_add_char(&text, '\n');
    }
    struct error e;
    if (!text.failed && folder_write(n->job.folder, "hostfile", buf_str(&text), &e) < 0)
        log_warning("%s", e.text);
    buf_free(&text);
}

static void take_collector(struct node *n, struct str collector_line)
{
    struct error e;
    if (agent_process_collect(&n->agent, collector_line, &e) < 0)
        log_warning("%s", e.text);
}

// Sends "VERB HOST" to the relay for each host.
static void tell_each(struct node *n, const char *verb, struct str hosts)
{
    while (hosts.data) {
        struct str host = str_cut(&hosts, ',');
        if (host.size)
            child_tell(&n->relay, "%s %.*s", verb, STR_ARG(host));
    }
}

// Writes the job's address into this node's job.json, so commands on this node query the job and
// not only the node's file.
static void take_url(struct node *n, struct str url)
{
    struct error e;
    snprintf(n->job.url, sizeof n->job.url, "%.*s", STR_ARG(url));
    if (n->job.folder[0] && job_write(&n->job, n->job.folder, JOB_FILE, &e) < 0)
        log_warning("%s", e.text);
}

// Takes this node's name from an environment variable. Without it, the launcher starts this node
// again in a step of its own.
static void take_name(struct node *n, struct str variable)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", STR_ARG(variable));
    const char *name = getenv(text);
    if (!name || !name[0] || strlen(name) >= sizeof n->input.name)
        return;
    memcpy(n->input.name, name, strlen(name) + 1);
    say("here %s", name);
}

static void on_news(void *user, enum node_input_news news, struct str value)
{
    struct node *n = user;
    bool relays = n->relay.state == CHILD_READY;
    if (news == NODE_INPUT_PARENT && relays) {
        child_tell(&n->relay, "parent %.*s", STR_ARG(value));
    } else if (news == NODE_INPUT_CHILDREN && relays && n->input.children) {
        // First the nodes that are no longer children, then all present ones, because both lists
        // may name a node.
        tell_each(n, "exclude", str_of(n->input.children));
        tell_each(n, "expect", value);
    } else if (news == NODE_INPUT_HOSTS && n->input.whole) {
        write_hostfile(n, value);
    } else if (news == NODE_INPUT_FINISH) {
        n->finishing = n->ready;
        n->finish_ns = clock_monotonic_ns();
    } else if (news == NODE_INPUT_DROP) {
        n->dropped = n->ending = true;
    } else if (news == NODE_INPUT_COLLECTOR) {
        take_collector(n, value);
    } else if (news == NODE_INPUT_URL) {
        take_url(n, value);
    } else if (news == NODE_INPUT_NAME_IN) {
        take_name(n, value);
    } else if (news == NODE_INPUT_END) {
        n->ending = true;
    }
}

// Reads pending lines. A line that cannot be handled ends the node.
static int read_input(struct node *n, struct error *e)
{
    char piece[4096];
    ssize_t size = read(STDIN_FILENO, piece, sizeof piece);
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (size <= 0) {
        n->ending = true;
        return 0;
    }
    n->last_input_ns = clock_monotonic_ns();
    return node_input_take(&n->input, (struct str){piece, (size_t)size}, on_news, n, e);
}

// ---------------------------------------------------------------- the agent

// Reads the agent's lines. The relay must know if the agent has series of another host.
static void take_from_agent(void *user, const char *line)
{
    struct node *n = user;
    if (n->relay.state == CHILD_READY && strcmp(line, "hosts") == 0)
        child_tell(&n->relay, "%s", line);
}

static int start_agent(struct node *n, struct error *e)
{
    struct child_command c;
    int status = agent_process_command(&n->agent, &n->job, &c, e);
    if (status < 0)
        return status;
    for (size_t i = 0; i < n->input.argument_count; i++)
        child_command_add(&c, "%s", n->input.arguments[i]);
    status = agent_process_start(&n->agent, &c, e);
    n->agent.child.take = take_from_agent;
    n->agent.child.user = n;
    return status;
}

// Starts the relay as soon as the agent serves and the aggregator's address is known. If the relay
// ends unexpectedly, it is started again a few times.
static void start_relay(struct node *n)
{
    if (n->ending || !n->input.key[0] || !n->input.parents[0] || child_runs(&n->relay) ||
        n->relay_refused || !child_is_worth_it(&n->relay))
        return;
    struct child_command c = {0};
    child_command_add(&c, "sonde");
    child_command_add(&c, "relay");
    child_command_add(&c, "--key-file=%s/key", n->job.folder);
    child_command_add(&c, "--parent=%s", n->input.parents);
    if (n->input.children)
        child_command_add(&c, "--children");
    child_command_add(&c, "--host=%s", n->input.name[0] ? n->input.name : n->job.host);
    child_command_add(&c, "--job=%s", n->job.id);
    if (n->input.transport[0])
        child_command_add(&c, "--transport=%s", n->input.transport);
    child_command_add(&c, "--tsdb-server-port=%d", atoi(n->input.dragon_port)); // 0: none
    child_command_add(&c, "--control-fd=%d", CHILD_CONTROL_FD);
    child_command_add(&c, "--");
    child_command_add(&c, "%s", n->job.folder);
    struct error e;
    if (child_start(&n->relay, "relay", &c, &e) < 0)
        say("relay cannot be started: %s", e.text);
    child_command_free(&c);
}

// Handles "ready PORT": other nodes can connect.
static void on_relay_ready(struct node *n)
{
    if (!n->input.children || n->hub_reported || n->relay.state != CHILD_READY)
        return;
    tell_each(n, "expect", str_of(n->input.children));
    say("hub %d", atoi(n->relay.line));
    n->hub_reported = true;
}

static void on_relay_end(struct node *n, int status)
{
    char how[64];
    child_reaped(&n->relay, status);
    if (n->hub_reported)
        say("hub 0");
    n->hub_reported = false;
    if (n->relay.stopping || n->ending)
        return;
    child_status_text(status, how, sizeof how);
    if (child_refused(&n->relay)) {
        say("relay cannot work: %s", n->relay.line + strlen("error "));
        n->relay_refused = true;
    } else {
        bool again = child_is_worth_it(&n->relay);
        say("relay has ended%s (%s)%s", again ? "" : " again", how,
            again ? "; starting it again" : " and is not started again");
    }
}

static void on_agent_end(struct node *n, int status)
{
    bool was_ready = n->agent.child.state == CHILD_READY;
    child_reaped(&n->agent.child, status);
    if (n->agent.child.stopping || (!n->ready && !was_ready))
        return; // at the end it is expected; at the start, the loop there handles it
    char how[64];
    struct error e;
    child_status_text(status, how, sizeof how);
    bool again = child_is_worth_it(&n->agent.child);
    if (again && start_agent(n, &e) == 0) {
        say("agent has ended (%s); starting it again", how);
        return;
    }
    if (!again)
        say("agent has ended again (%s) and is not started again", how);
    else
        say("agent has ended (%s): %s", how, e.text);
    agent_process_refuse(&n->agent);
}

static void reap(struct node *n)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == n->agent.child.pid && child_runs(&n->agent.child))
            on_agent_end(n, status);
        else if (pid == n->relay.pid && child_runs(&n->relay))
            on_relay_end(n, status);
    }
}

// Waits for the next event, at most until deadline_ns, and handles it.
static int turn(struct node *n, int64_t deadline_ns, struct error *e)
{
    int64_t left_ns = deadline_ns - clock_monotonic_ns();
    struct pollfd fds[] = {{.fd = n->signals.fd, .events = POLLIN},
                           {.fd = n->agent.child.control, .events = POLLIN},
                           {.fd = n->relay.control, .events = POLLIN},
                           {.fd = n->ending ? -1 : STDIN_FILENO, .events = POLLIN},
                           {.fd = n->agent.keeper.fd, .events = POLLIN}};
    int timeout_ms = left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
    if (poll(fds, sizeof fds / sizeof fds[0], timeout_ms) <= 0)
        return 0;
    int status = fds[3].revents ? read_input(n, e) : 0;
    if (fds[1].revents)
        agent_process_read(&n->agent);
    if (fds[2].revents)
        child_read(&n->relay);
    if (fds[4].revents)
        keeper_home_read(&n->agent.keeper);
    on_relay_ready(n);
    bool from_terminal;
    for (int number = signals_next(&n->signals, &from_terminal); number;
         number = signals_next(&n->signals, &from_terminal)) {
        if (number == SIGCHLD)
            reap(n);
        else if (signals_ends(number))
            n->ending = true;
    }
    return status;
}

// ---------------------------------------------------------------- the stages

static int read_setup(struct node *n, struct error *e)
{
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)NODE_TOLD_MS * NS_PER_MS;
    int status = 0;
    while (status == 0 && !n->input.whole && !n->ending && clock_monotonic_ns() < deadline_ns)
        status = turn(n, deadline_ns, e);
    if (status < 0 || n->ending)
        return status;
    if (!n->input.whole)
        return error_set(
            e, -ETIMEDOUT,
            "no job arrived on standard input within %d s (sonde run starts this command)",
            NODE_TOLD_MS / 1000);
    struct job *job = &n->job;
    if (!n->input.job[0] || n->input.folder[0] != '/' || !n->input.token[0])
        return error_set(e, -EPROTO, "the setup lacks the job, its folder or its token");
    memcpy(job->id, n->input.job, sizeof job->id);
    memcpy(job->record, n->input.record, sizeof job->record);
    job->command = n->input.command ? strdup(n->input.command) : NULL;
    return 0;
}

static int write_key(const struct node *n, struct error *e)
{
    char key[WIRE_KEY_BYTES];
    bool sound = strlen(n->input.key) == 2 * sizeof key;
    for (size_t i = 0; i < sizeof key && sound; i++) {
        unsigned byte;
        sound = sscanf(n->input.key + 2 * i, "%2x", &byte) == 1;
        key[i] = (char)byte;
    }
    int status = sound ? folder_write(n->job.folder, "key", (struct str){key, sizeof key}, e)
                       : error_set(e, -EPROTO, "the job's key in the setup is not valid");
    explicit_bzero(key, sizeof key);
    return status;
}

static int make_folder(struct node *n, struct error *e)
{
    char base[FOLDER_PATH_MAX];
    snprintf(base, sizeof base, "%s", n->input.folder);
    char *slash = strrchr(base, '/');
    *slash = 0;
    snprintf(n->job.id, sizeof n->job.id, "%s", slash + 1);
    int fd = folder_make_private(base, e);
    if (fd < 0)
        return fd;
    close(fd);
    // If the launcher of a job of this name was killed, keep its recording and free the name.
    sweep_dead_jobs(base);
    int status = job_make_folder(&n->job, base, NULL, &n->lock_fd, e);
    if (status < 0)
        return status;
    if (strcmp(n->job.folder, n->input.folder) != 0)
        return error_set(
            e, -EEXIST,
            "the run folder %s already exists: nodes share it (set TMPDIR or --run-dir to a "
            "folder that "
            "every node has to itself), or another run of this job uses it (set SONDE_JOB)",
            n->input.folder);
    memcpy(n->job.id, n->input.job, sizeof n->job.id);
    char line[sizeof n->input.token + 1];
    snprintf(line, sizeof line, "%s\n", n->input.token);
    status = folder_write(n->job.folder, "token", str_of(line), e);
    if (status == 0 && n->input.key[0])
        status = write_key(n, e);
    if (status == 0)
        status = job_write(&n->job, n->job.folder, JOB_FILE, e);
    if (status == 0)
        write_hostfile(n, str_of(n->input.hosts ? n->input.hosts : ""));
    return status;
}

static int wait_for_agent(struct node *n, struct error *e)
{
    int status = start_agent(n, e);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)LAUNCH_START_TIMEOUT_MS * NS_PER_MS;
    while (status == 0 && n->agent.child.state == CHILD_STARTING && !n->ending &&
           clock_monotonic_ns() < deadline_ns)
        status = turn(n, deadline_ns, e);
    if (status < 0 || n->ending || n->agent.child.state == CHILD_READY)
        return status;
    if (child_refused(&n->agent.child))
        return error_set(e, -EIO, "%s", n->agent.child.line + strlen("error "));
    return error_set(e, -ETIMEDOUT, "the agent %s",
                     n->agent.child.state == CHILD_STARTING ? "is not ready in time"
                                                            : "has ended at its start");
}

// Whether all nodes share the recording's folder: it holds the launcher's mark, or, if the launcher
// has sent no mark, it exists already. Then the launcher writes run.json there. A folder that this
// node makes belongs to this node alone, which then writes run.json itself.
static bool is_shared(const struct node *n)
{
    char path[FOLDER_PATH_MAX + sizeof n->input.mark];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", n->job.record, n->input.mark);
    return n->job.record[0] && stat(path, &info) == 0;
}

// Does one step of the work of "finish".
static void finish(struct node *n)
{
    if (!n->finishing || n->closed)
        return;
    agent_process_stop(&n->agent);
    if (child_runs(&n->agent.child)) {
        if (clock_monotonic_ns() > n->finish_ns + n->input.stop_ms * NS_PER_MS)
            kill(n->agent.child.pid, SIGKILL); // the data that it has collected are in its file
        return;
    }
    n->closed = true;
    n->ending = is_shared(n);
    if (!n->ending)
        say("closed");
}

static int serve(struct node *n, struct error *e)
{
    n->ready = true;
    say("ready %s", n->job.host);
    n->last_input_ns = n->beaten_ns = clock_monotonic_ns();
    int status = 0;
    while (status == 0 && !n->ending) {
        start_relay(n);
        finish(n);
        if (n->ending)
            break;
        int64_t beat_ns = n->beaten_ns + n->input.beat_ms * NS_PER_MS,
                orphan_ns = n->last_input_ns + n->input.orphan_ms * NS_PER_MS;
        int64_t next_ns = beat_ns < orphan_ns ? beat_ns : orphan_ns,
                stop_ns = n->finish_ns + n->input.stop_ms * NS_PER_MS;
        if (n->finishing && !n->closed && stop_ns < next_ns)
            next_ns = stop_ns;
        status = turn(n, next_ns, e);
        int64_t now_ns = clock_monotonic_ns();
        if (now_ns >= n->beaten_ns + n->input.beat_ms * NS_PER_MS) {
            say("beat");
            n->beaten_ns = now_ns;
        }
        if (now_ns >= n->last_input_ns + n->input.orphan_ms * NS_PER_MS)
            return error_set(e, -ETIMEDOUT,
                             "nothing was heard from the first node for %lld s; this one ends",
                             (long long)(n->input.orphan_ms / 1000));
    }
    return status;
}

static void stop_children(struct node *n)
{
    n->ending = true;
    child_stop(&n->relay);
    agent_process_stop(&n->agent);
    int64_t deadline_ns = clock_monotonic_ns() + n->input.stop_ms * NS_PER_MS;
    while ((child_runs(&n->agent.child) || child_runs(&n->relay)) &&
           clock_monotonic_ns() < deadline_ns)
        turn(n, deadline_ns, NULL);
    if (child_runs(&n->agent.child)) {
        say("agent has not ended in time and is killed; the data that it had taken are in its "
            "file");
        kill(n->agent.child.pid, SIGKILL);
    }
    if (child_runs(&n->relay))
        kill(n->relay.pid, SIGKILL); // it holds no data that could be lost
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while ((child_runs(&n->agent.child) || child_runs(&n->relay)) &&
           clock_monotonic_ns() < deadline_ns)
        turn(n, deadline_ns, NULL);
}

// Whether a file of that name exists that the recording must not replace. It may replace a copy
// that `sonde dump` made of this job.
static bool is_in_the_way(const struct node *n, const char *file)
{
    struct stat info;
    struct store_reader *reader;
    if (stat(file, &info) != 0)
        return false;
    if (store_reader_open(file, &reader, NULL) != 0)
        return true;
    bool ours = ask_copy_is_of(reader, str_of(n->job.id));
    store_reader_close(reader);
    return !ours;
}

// If the recording's folder exists already, the launcher or another node has made it on a shared
// file system, and run.json is theirs. If this node makes the folder, it belongs to this node
// alone, which then writes run.json itself.
static int keep_recording(struct node *n, struct error *e)
{
    const char *to = n->job.record;
    char file[FOLDER_PATH_MAX + JOB_HOST_MAX + 16];
    snprintf(file, sizeof file, "%s/%s.sonde", to, n->job.host);
    if (is_in_the_way(n, file))
        return error_set(e, -EEXIST, "%s holds a recording already", to);
    int status = runs_join(&n->job, n->job.folder, to, is_shared(n), e);
    if (status == 0)
        say("kept %s", file);
    return status;
}

// Keeps the recording and removes everything else of the node's run.
static void conclude(struct node *n)
{
    struct error e;
    n->job.end_ns = clock_realtime_ns();
    n->job.agent_restarts = n->agent.starts > 0 ? n->agent.starts - 1 : 0;
    char file[FOLDER_PATH_MAX + JOB_HOST_MAX + 16];
    struct stat info;
    snprintf(file, sizeof file, "%s/%s.sonde", n->job.folder, n->job.host);
    bool recorded = stat(file, &info) == 0;
    if (recorded && n->job.record[0] && !n->dropped && keep_recording(n, &e) < 0)
        say("stays %s: %s", n->job.folder, e.text);
    else if (folder_remove(n->job.folder, &e) < 0)
        log_warning("%s", e.text);
}

int node_run(struct error *e)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n) {
        error_set(e, -ENOMEM, "out of memory");
        return 1;
    }
    agent_process_init(&n->agent);
    n->lock_fd = n->relay.control = -1;
    node_input_init(&n->input);
    n->job.start_ns = clock_realtime_ns();
    n->job.pid = getpid();
    n->job.exit_code = -1;
    job_host(n->job.host);
    int status = signals_open(&n->signals, e);
    bool opened = status == 0;
    if (status == 0)
        status = read_setup(n, e);
    if (status == 0 && !n->ending)
        status = make_folder(n, e);
    if (status == 0 && !n->ending)
        status = wait_for_agent(n, e);
    if (status == 0 && !n->ending)
        status = serve(n, e);
    if (status < 0)
        say("error %s", e->text);
    if (child_runs(&n->agent.child) || child_runs(&n->relay))
        stop_children(n);
    if (n->job.folder[0])
        conclude(n);
    say("ended");
    if (opened)
        signals_close(&n->signals);
    agent_process_free(&n->agent);
    if (n->lock_fd >= 0)
        close(n->lock_fd);
    node_input_free(&n->input);
    job_free(&n->job);
    free(n);
    return status < 0 ? 1 : 0;
}
