#include "simulate/simulate.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "http/tokens.h"
#include "launch/command.h"
#include "launch/folder.h"
#include "launch/run.h"
#include "launch/signals.h"
#include "simulate/part.h"
#include "wire/hub.h"
#include "wire/tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SPARE_DESCRIPTORS = 300, // descriptors of each process that nodes do not use
    LINE_BYTES = 600,
    PROGRESS_MS = 500,
    STOP_MS = 10000,
    NODE_MAPPINGS = 8, // upper limit of a node's memory mappings
    MAPPINGS_DEFAULT = 65530,
};

struct process {
    pid_t pid; // 0: the process has ended
    int control;
    char line[LINE_BYTES]; // received output
    size_t size;
    bool ready;
};

struct simulation {
    const struct simulate_options *o;
    struct signals signals;
    struct simulated_metrics metrics;
    char base[FOLDER_PATH_MAX], folder[FOLDER_PATH_MAX + 32], head[FOLDER_PATH_MAX + 64], url[512];
    char key_file[FOLDER_PATH_MAX + 64], token_file[FOLDER_PATH_MAX + 64];
    uint8_t key[WIRE_KEY_BYTES];
    int64_t interval_ns, start_ns, now_ns;
    struct part_shared *shared;
    size_t shared_bytes;
    struct process parts[SIMULATE_PARTS_MAX];
    size_t part_count;
    struct simulated_node own; // node 0
    double *row;
    struct aggregator *aggregator;
    pid_t command;
    int exit_code;
    bool ending;
};

// ---- limits ----

static size_t mappings_max(void)
{
    size_t most = MAPPINGS_DEFAULT;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
    if (f && fscanf(f, "%zu", &most) != 1)
        most = MAPPINGS_DEFAULT;
    if (f)
        fclose(f);
    return most;
}

// Chooses the number of processes: as many as processors, or more if a process cannot have enough
// descriptors or mappings for its share.
static int choose_parts(struct simulation *s, struct error *e)
{
    struct rlimit limit = {0};
    size_t nodes = s->o->nodes;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    size_t descriptors =
        limit.rlim_cur > SPARE_DESCRIPTORS ? (size_t)limit.rlim_cur - SPARE_DESCRIPTORS : 0;
    size_t each = descriptors / PART_NODE_DESCRIPTORS, by_mappings = mappings_max() / NODE_MAPPINGS;
    each = each < by_mappings ? each : by_mappings;
    size_t direct = nodes - 1 < s->o->fanout ? nodes - 1 : s->o->fanout;
    if (each == 0 || (nodes + each - 1) / each > SIMULATE_PARTS_MAX || direct > descriptors)
        return error_set(e, -EMFILE,
                         "a process may have %zu open files, which is too few for %zu nodes, %zu "
                         "of them at one hub: "
                         "raise the limit (ulimit -n; as root: prlimit --nofile=65536 --pid $$), "
                         "or ask for fewer "
                         "nodes or a smaller --fanout",
                         (size_t)limit.rlim_cur, nodes, direct);
    size_t wanted = parallel_processors(), needed = (nodes + each - 1) / each;
    wanted = wanted > needed ? wanted : needed;
    wanted = wanted < nodes - 1 ? wanted : nodes - 1;
    s->part_count = wanted < SIMULATE_PARTS_MAX ? wanted : SIMULATE_PARTS_MAX;
    return 0;
}

// ---- starting ----

static int make_folders(struct simulation *s, struct error *e)
{
    char token[TOKEN_TEXT_MAX + 1];
    int rc = folder_base_path(NULL, s->base, e);
    int fd = rc ? rc : folder_make_private(s->base, e);
    if (fd < 0)
        return fd;
    close(fd);
    snprintf(s->folder, sizeof s->folder, "%s/simulate-XXXXXX", s->base);
    if (!mkdtemp(s->folder))
        return error_set(e, -errno, "cannot make a folder in %s: %s", s->base, strerror(errno));
    snprintf(s->head, sizeof s->head, "%s/head", s->folder);
    snprintf(s->key_file, sizeof s->key_file, "%s/key", s->folder);
    snprintf(s->token_file, sizeof s->token_file, "%s/token", s->folder);
    snprintf(token, sizeof token, "%s\n", s->o->serve.token);
    rc = folder_make_all(s->head, e);
    if (rc == 0)
        rc = wire_key_make(s->key_file, s->key, e);
    return rc ? rc : folder_write(s->folder, "token", str_of(token), e);
}

static int share_memory(struct simulation *s, struct error *e)
{
    s->shared_bytes = sizeof *s->shared + s->o->nodes * sizeof s->shared->ports[0];
    s->shared =
        mmap(NULL, s->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->shared != MAP_FAILED)
        return 0;
    s->shared = NULL;
    return error_set(e, -errno, "no memory for the simulation: %s", strerror(errno));
}

static void run_part(struct simulation *s, size_t number, int control)
{
    struct part_options o = {.number = number,
                             .parts = s->part_count,
                             .nodes = s->o->nodes,
                             .metrics = &s->metrics,
                             .folder = s->folder,
                             .job = s->o->serve.job,
                             .fanout = s->o->fanout,
                             .interval_ns = s->interval_ns,
                             .start_ns = s->start_ns,
                             .now_ns = s->now_ns,
                             .control_fd = control,
                             .shared = s->shared};
    memcpy(o.key, s->key, sizeof o.key);
    setsid(); // Ctrl-C must reach only the first process
    signals_close(&s->signals);
    for (size_t i = 0; i < number; i++)
        close(s->parts[i].control);
    _exit(part_run(&o));
}

static int start_parts(struct simulation *s, struct error *e)
{
    for (size_t i = 0; i < s->part_count; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            return error_set(e, -errno, "cannot start a process: %s", strerror(errno));
        pid_t pid = fork();
        if (pid == 0) {
            close(pair[0]);
            run_part(s, i, pair[1]);
        }
        int code = errno;
        close(pair[1]);
        s->parts[i] = (struct process){.pid = pid > 0 ? pid : 0, .control = pair[0]};
        if (pid < 0) {
            close(pair[0]);
            s->part_count = i;
            return error_set(e, -code, "cannot start a process: %s", strerror(code));
        }
    }
    return 0;
}

static int serve(struct simulation *s, struct error *e)
{
    const char *paths[] = {s->head};
    struct aggregator_hub hub = {
        .address = "127.0.0.1", .key_file = s->key_file, .host = s->own.host};
    struct aggregator_options o = s->o->serve;
    o.paths = paths;
    o.path_count = 1;
    o.hub = &hub;
    int rc = aggregator_start(&o, &s->aggregator, e);
    if (rc)
        return rc;
    for (size_t i = 1; i < s->o->nodes && rc == 0; i++) {
        char host[SIMULATED_HOST_MAX], via[SIMULATED_HOST_MAX] = "";
        size_t parent = wire_tree_parent(i, s->o->fanout);
        simulated_host(i, host);
        if (parent)
            simulated_host(parent, via);
        rc = hub_expect(aggregator_hub(s->aggregator), str_of(host), str_of(via));
    }
    if (rc)
        return error_set(e, rc, "cannot expect so many nodes: %s", strerror(-rc));
    bool v6 = strchr(o.listen, ':') != NULL;
    snprintf(s->url, sizeof s->url, "http%s://%s%s%s:%d", o.tls_cert ? "s" : "", v6 ? "[" : "",
             o.listen, v6 ? "]" : "", aggregator_port(s->aggregator));
    atomic_store(&s->shared->hub_port, hub_port(aggregator_hub(s->aggregator)));
    return 0;
}

// ---- events ----

// Reads the output of a part. If the part fails at the start, the simulation fails, too.
static int read_part(struct process *p, struct error *e)
{
    ssize_t n = recv(p->control, p->line + p->size, sizeof p->line - 1 - p->size, MSG_DONTWAIT);
    p->size += n > 0 ? (size_t)n : 0;
    p->line[p->size] = 0;
    char *end = strchr(p->line, '\n');
    if (!end && n > 0 && p->size < sizeof p->line - 1)
        return 0;
    if (end)
        *end = 0;
    p->ready = end && strcmp(p->line, "ready") == 0;
    if (p->ready)
        return 0;
    return end && str_starts(str_of(p->line), STR("error "))
               ? error_set(e, -EIO, "%s", p->line + strlen("error "))
               : error_set(e, -EIO, "a process of the simulation has ended at its start");
}

static void reap(struct simulation *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->command) {
            s->exit_code = command_exit_code(status);
            s->command = 0;
            s->ending = true;
        }
        for (size_t i = 0; i < s->part_count; i++) {
            if (pid != s->parts[i].pid)
                continue;
            s->parts[i].pid = 0;
            if (!s->ending && s->parts[i].ready)
                log_warning(
                    "process %zu of the simulation has ended (%s %d): its nodes are missing", i,
                    WIFSIGNALED(status) ? "signal" : "exit code",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
}

// Waits for the next event, at most until deadline_ns.
static int turn(struct simulation *s, int64_t deadline_ns, struct error *e)
{
    struct pollfd fds[1 + SIMULATE_PARTS_MAX] = {{.fd = s->signals.fd, .events = POLLIN}};
    int64_t left_ns = deadline_ns - clock_monotonic_ns();
    for (size_t i = 0; i < s->part_count; i++)
        fds[1 + i] =
            (struct pollfd){.fd = s->parts[i].ready ? -1 : s->parts[i].control, .events = POLLIN};
    if (poll(fds, 1 + s->part_count, left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0) <= 0)
        return 0;
    int rc = 0;
    for (size_t i = 0; i < s->part_count && rc == 0; i++)
        if (fds[1 + i].revents)
            rc = read_part(&s->parts[i], e);
    bool from_terminal;
    for (int number = signals_next(&s->signals, &from_terminal); number;
         number = signals_next(&s->signals, &from_terminal)) {
        if (number == SIGCHLD)
            reap(s);
        else if (s->command && !from_terminal)
            kill(s->command, number);
        else if (!s->command && signals_ends(number))
            s->ending = true;
    }
    return rc;
}

static void show_progress(const struct simulation *s, bool over)
{
    size_t filled = atomic_load(&s->shared->filled), open = atomic_load(&s->shared->open),
           all = s->o->nodes - 1;
    if (s->o->quiet || !isatty(STDERR_FILENO))
        return;
    if (over)
        fprintf(stderr, "\r\033[K");
    else if (filled < all)
        fprintf(stderr, "\rsonde: %zu of %zu nodes have their history\033[K", filled, all);
    else
        fprintf(stderr, "\rsonde: %zu of %zu nodes are connected\033[K", open, all);
}

static int wait_for_parts(struct simulation *s, struct error *e)
{
    int rc = 0;
    size_t ready = 0;
    while (rc == 0 && !s->ending && ready < s->part_count) {
        rc = turn(s, clock_monotonic_ns() + (int64_t)PROGRESS_MS * NS_PER_MS, e);
        show_progress(s, false);
        for (ready = 0; ready < s->part_count && s->parts[ready].ready; ready++)
            ;
    }
    show_progress(s, true);
    return rc;
}

// ---- running ----

static void say_where(const struct simulation *s)
{
    size_t relays = 0;
    for (size_t i = 1; i < s->o->nodes; i++)
        relays += wire_tree_is_relay(i, s->o->nodes, s->o->fanout);
    if (s->o->quiet)
        return;
    fprintf(stderr,
            "sonde: %zu nodes × %zu metrics every %g s, %zu relay%s, %zu process%s; at most %.1f "
            "MiB a node in %s\n",
            s->o->nodes, s->o->metrics, s->o->rate_s, relays, relays == 1 ? "" : "s", s->part_count,
            s->part_count == 1 ? "" : "es", (double)simulated_file_bytes(s->o->metrics) / (1 << 20),
            s->folder);
    char view[TOKEN_TEXT_MAX];
    token_of_role(str_of(s->o->serve.token), ROLE_VIEW, view);
    fprintf(stderr, "sonde: %s/?token=%s\n", s->url, view);
}

static int start_command(struct simulation *s, struct error *e)
{
    struct command_environment env = {0};
    if (!s->o->command || !s->o->command[0])
        return 0;
    command_set(&env, "SONDE_URL", "%s", s->url);
    command_set(&env, "SONDE_TOKEN_FILE", "%s", s->token_file);
    command_set(&env, "SONDE_JOB", "%s", s->o->serve.job);
    bool unstarted;
    pid_t pid = command_start(s->o->command, &env, &s->signals, &unstarted, e);
    command_environment_free(&env);
    if (pid < 0)
        s->exit_code = command_failure_code((int)pid);
    s->command = pid > 0 ? pid : 0;
    return pid < 0 ? (int)pid : 0;
}

// This process samples node 0.
static int go_on(struct simulation *s, struct error *e)
{
    int64_t next_ns = (s->now_ns / s->interval_ns + 1) * s->interval_ns;
    int rc = 0;
    while (rc == 0 && !s->ending) {
        int64_t now_ns = clock_realtime_ns();
        rc = turn(s, clock_monotonic_ns() + (next_ns > now_ns ? next_ns - now_ns : 0), e);
        if (clock_realtime_ns() < next_ns)
            continue;
        simulated_node_sample(&s->own, &s->metrics, s->start_ns, next_ns, s->row);
        next_ns += s->interval_ns;
        if (now_ns - next_ns > NS_PER_S)
            next_ns = (now_ns / s->interval_ns + 1) * s->interval_ns;
    }
    return rc;
}

// ---- ending ----

static void stop(struct simulation *s)
{
    s->ending = true;
    aggregator_stop(s->aggregator);
    if (s->command)
        kill(s->command, SIGTERM);
    for (size_t i = 0; i < s->part_count; i++)
        if (s->parts[i].control >= 0)
            close(s->parts[i].control);
    int64_t until_ns = clock_monotonic_ns() + (int64_t)STOP_MS * NS_PER_MS;
    for (bool running = true; running;) {
        reap(s);
        running = s->command != 0;
        for (size_t i = 0; i < s->part_count; i++)
            running |= s->parts[i].pid != 0;
        if (!running)
            break;
        struct pollfd fd = {.fd = s->signals.fd, .events = POLLIN};
        bool from_terminal;
        poll(&fd, 1, PROGRESS_MS);
        while (signals_next(&s->signals, &from_terminal))
            ;
        for (size_t i = 0; clock_monotonic_ns() > until_ns && i < s->part_count; i++)
            if (s->parts[i].pid)
                kill(s->parts[i].pid, SIGKILL);
        if (clock_monotonic_ns() > until_ns && s->command)
            kill(s->command, SIGKILL);
    }
}

static void clean_up(struct simulation *s)
{
    struct error e;
    if (s->own.store)
        simulated_node_remove(&s->own);
    if (s->folder[0] && (rmdir(s->head), folder_remove(s->folder, &e) < 0))
        log_warning("%s", e.text);
    rmdir(s->base); // fails if another process uses the folder
    if (s->shared)
        munmap(s->shared, s->shared_bytes);
    simulated_metrics_free(&s->metrics);
    free(s->row);
}

int simulate_run(const struct simulate_options *options, struct error *e)
{
    struct simulation s = {.o = options};
    s.interval_ns = (int64_t)(options->rate_s * NS_PER_S);
    s.now_ns = clock_realtime_ns() / s.interval_ns * s.interval_ns;
    s.start_ns =
        s.now_ns - (int64_t)(options->history_s * NS_PER_S) / s.interval_ns * s.interval_ns;
    int rc = signals_open(&s.signals, e);
    if (rc)
        return 1;
    if (simulated_metrics_make(options->metrics, options->seed, &s.metrics) != 0 ||
        !(s.row = calloc(options->metrics, sizeof *s.row)))
        rc = error_set(e, -ENOMEM, "no memory for the simulation");
    if (rc == 0)
        rc = choose_parts(&s, e);
    size_t parts = s.part_count;
    s.part_count = 0;
    if (rc == 0)
        rc = make_folders(&s, e);
    if (rc == 0)
        rc = share_memory(&s, e);
    if (rc == 0) {
        s.part_count = parts;
        rc = start_parts(&s, e);
    }
    if (rc == 0)
        rc = simulated_node_make(&s.own, s.head, 0, &s.metrics, options->serve.job, s.interval_ns,
                                 s.start_ns, s.now_ns, e);
    if (rc == 0)
        rc = serve(&s, e);
    if (rc == 0)
        rc = wait_for_parts(&s, e);
    if (rc == 0 && !s.ending) {
        say_where(&s);
        rc = start_command(&s, e);
    }
    if (rc == 0)
        rc = go_on(&s, e);
    stop(&s);
    clean_up(&s);
    signals_close(&s.signals);
    return rc ? (s.exit_code ? s.exit_code : 1) : s.exit_code;
}
