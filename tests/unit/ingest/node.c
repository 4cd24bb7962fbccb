#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void node_open(struct node *n)
{
    memset(n, 0, sizeof *n);
    snprintf(n->folder, sizeof n->folder, "/tmp/sonde-test-XXXXXX");
    assert_non_null(mkdtemp(n->folder));
    snprintf(n->path, sizeof n->path, "%s/agent.sock", n->folder);
    n->store = fake_store_open();
    n->listener = -1;
    n->level = 4;
    signal(SIGPIPE, SIG_IGN);
}

// The fake store's value of a series stands for the recording of earlier agents.
static bool recorded(void *user, uint32_t series, double *value)
{
    const struct store *s = user;
    if (series >= s->series_count || s->series[series].count == 0)
        return false;
    *value = s->series[series].last;
    return true;
}

static void recorded_events(void *user,
                            bool (*each)(const struct store_event *event, void *each_user),
                            void *each_user)
{
    const struct store *s = user;
    for (size_t i = 0; i < s->event_count; i++) {
        const struct fake_event *f = &s->events[i];
        struct store_label labels[STORE_LABELS_MAX];
        struct store_event e = {.kind = f->kind,
                                .start_ns = f->start_ns,
                                .end_ns = f->end_ns,
                                .text = str_of(f->text),
                                .id = f->id,
                                .parent = f->parent,
                                .labels = labels};
        for (const char *at = f->labels; *at;) {
            size_t key = strcspn(at, "="), value = strcspn(at + key + 1, ",");
            labels[e.label_count++] = (struct store_label){{at, key}, {at + key + 1, value}};
            at += key + 1 + value + (at[key + 1 + value] == ',');
        }
        if (!each(&e, each_user))
            return;
    }
}

void node_agent_start(struct node *n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, n->path, strlen(n->path) + 1);
    unlink(n->path);
    n->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(n->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(n->listener, 1024), 0);
    struct store_label host = {STR("host"), STR("here")};
    struct ingest_options options = {.socket_path = n->path,
                                     .labels = &host,
                                     .label_count = 1,
                                     .level = n->level,
                                     .recorded = recorded,
                                     .open_spans = recorded_events,
                                     .recorded_user = n->store};
    assert_int_equal(ingest_create(n->store, &options, &n->in, NULL), 0);
    if (!n->blind)
        ingest_adopt(n->in);
}

static void add_stats(struct ingest_stats *to, const struct ingest_stats *s)
{
    to->programs_total += s->programs_total;
    to->points += s->points;
    to->dropped_full += s->dropped_full;
    to->dropped_corrupt += s->dropped_corrupt;
    to->dropped_store += s->dropped_store;
    to->dropped_limit += s->dropped_limit;
    to->clamped += s->clamped;
}

struct ingest_stats node_stats(const struct node *n)
{
    struct ingest_stats all = n->before, now = {0};
    if (n->in)
        ingest_get_stats(n->in, &now);
    add_stats(&all, &now);
    all.programs = now.programs;
    return all;
}

void node_agent_stop(struct node *n)
{
    struct ingest_stats now;
    close(n->listener);
    n->listener = -1;
    for (size_t i = 0; i < n->connection_count; i++)
        close(n->connections[i]);
    n->connection_count = 0;
    ingest_get_stats(n->in, &now);
    add_stats(&n->before, &now);
    ingest_counts_recorded(n->in);
    ingest_destroy(n->in);
    n->in = NULL;
}

void node_close(struct node *n)
{
    for (size_t i = 0; i < n->child_count; i++) {
        struct child *c = &n->children[i];
        if (!c->ended) {
            kill(c->pid, SIGKILL);
            waitpid(c->pid, NULL, 0);
        }
        close(c->in);
        close(c->out);
    }
    if (n->in)
        node_agent_stop(n);
    fake_store_close(n->store);
    unlink(n->path);
    rmdir(n->folder);
}

struct child *node_spawn_program(struct node *n, const char *const *environment,
                                 const char *const *arguments)
{
    int in[2], out[2];
    assert_true(n->child_count < NODE_CHILDREN_MAX);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct child *c = &n->children[n->child_count++];
    memset(c, 0, sizeof *c);
    fflush(stdout);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        static const char *const ours[] = {
            "SONDE_TAGS",           "SONDE_LOG", "SONDE_RING_BYTES",    "PMIX_RANK",
            "OMPI_COMM_WORLD_RANK", "PMI_RANK",  "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            unsetenv(ours[i]);
        setenv("SONDE_LEVEL", "1", 1);
        setenv("SONDE_SOCKET", n->path, 1);
        for (; environment && *environment; environment++) {
            char *text = strdup(*environment), *equals = strchr(text, '=');
            if (equals) {
                *equals = 0;
                setenv(text, equals + 1, 1);
            } else {
                unsetenv(text);
            }
            free(text);
        }
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->in = in[1];
    c->out = out[0];
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    return c;
}

struct child *node_spawn(struct node *n, const char *const *environment, const char *mode, ...)
{
    const char *arguments[16] = {getenv("SONDE_TEST_EMITTER"), mode};
    assert_non_null(arguments[0]);
    va_list args;
    va_start(args, mode);
    for (size_t i = 2; i < 15; i++)
        if (!(arguments[i] = va_arg(args, const char *)))
            break;
    va_end(args);
    return node_spawn_program(n, environment, arguments);
}

static void read_child(struct child *c)
{
    ssize_t r;
    while (c->size < sizeof c->text - 1 &&
           (r = read(c->out, c->text + c->size, sizeof c->text - 1 - c->size)) > 0)
        c->size += (size_t)r;
    c->text[c->size] = 0;
}

// Reads the HELLO of connection i. Returns false if the connection is closed and forgotten.
static bool greet(struct node *n, size_t i)
{
    struct ingest_descriptors fds;
    int r = ingest_receive_hello(n->connections[i], &fds, &n->peers[i]);
    if (r == -EAGAIN)
        return true;
    if (r == 0)
        r = ingest_attach(n->in, fds, n->peers[i]);
    n->greeted[i] = true;
    if (r == 0 || r == -EBUSY)
        return true;
    n->refused_segments++;
    close(n->connections[i]);
    n->connection_count--;
    n->connections[i] = n->connections[n->connection_count];
    n->peers[i] = n->peers[n->connection_count];
    n->greeted[i] = n->greeted[n->connection_count];
    return false;
}

static void accept_all(struct node *n)
{
    int fd;
    while (n->listener >= 0 && !n->deaf && n->connection_count < NODE_CHILDREN_MAX &&
           (fd = accept4(n->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        n->connections[n->connection_count] = fd;
        n->greeted[n->connection_count++] = false;
    }
    for (size_t i = 0; i < n->connection_count;)
        if (n->greeted[i] || greet(n, i))
            i++;
}

void node_round(struct node *n)
{
    enum { WAIT_MS = 2 };
    struct pollfd fds[NODE_CHILDREN_MAX + 1] = {{n->listener, POLLIN, 0}};
    for (size_t i = 0; i < n->connection_count; i++)
        fds[i + 1] = (struct pollfd){n->connections[i], POLLIN, 0};
    double fullest = 0;
    if (n->in)
        ingest_drain(n->in, &fullest);
    poll(fds, n->connection_count + 1, fullest > 0.1 ? 0 : WAIT_MS);
    for (size_t i = 0; i < n->connection_count;) {
        char bytes[64];
        if (!n->greeted[i]) {
            i++;
            continue;
        }
        ssize_t r = recv(n->connections[i], bytes, sizeof bytes, MSG_DONTWAIT);
        if (r > 0)
            n->bells += (uint64_t)r;
        if (r == 0 || (r < 0 && errno != EAGAIN)) {
            close(n->connections[i]);
            ingest_hangup(n->in, n->peers[i]);
            n->connections[i] = n->connections[--n->connection_count];
            n->peers[i] = n->peers[n->connection_count];
            n->greeted[i] = n->greeted[n->connection_count];
        } else {
            i++;
        }
    }
    accept_all(n);
    for (size_t i = 0; i < n->child_count; i++) {
        struct child *c = &n->children[i];
        read_child(c);
        if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
            c->ended = true;
            read_child(c);
        }
    }
}

static int64_t patience(void)
{
    return clock_monotonic_ns() + (int64_t)NODE_PATIENCE_S * NS_PER_S;
}

void node_until_said(struct node *n, struct child *c, const char *text)
{
    for (int64_t end = patience(); !strstr(c->text, text);) {
        node_round(n);
        if (clock_monotonic_ns() > end || (c->ended && !strstr(c->text, text)))
            fail_msg("the program (status 0x%x) did not say \"%s\" but \"%s\"", (unsigned)c->status,
                     text, c->text);
    }
}

void node_say(struct child *c, const char *text)
{
    assert_int_equal(write(c->in, text, strlen(text)), (int)strlen(text));
}

void node_until_ended(struct node *n, struct child *c)
{
    for (int64_t end = patience(); !c->ended;) {
        node_round(n);
        if (clock_monotonic_ns() > end)
            fail_msg("the program does not end");
    }
}

void node_until_all_gone(struct node *n)
{
    for (size_t i = 0; i < n->child_count; i++)
        node_until_ended(n, &n->children[i]);
    node_round(n); // handles connections that came at the very end
    for (int64_t end = patience(); node_stats(n).programs;) {
        node_round(n);
        if (clock_monotonic_ns() > end)
            fail_msg("the ingest does not let go of %d programs", (int)node_stats(n).programs);
    }
    node_round(n);
}

uint64_t child_number(const struct child *c, const char *key)
{
    const char *at = strstr(c->text, key);
    if (!at || at[strlen(key)] != '=')
        fail_msg("the program did not say %s= but \"%s\"", key, c->text);
    return strtoull(at + strlen(key) + 1, NULL, 10);
}

void node_needs_seccomp(void)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        skip();
}
