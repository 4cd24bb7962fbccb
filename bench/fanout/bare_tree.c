// bare_tree.c - carries the messages of a query through a tree of nodes over bare TCP, and does
// nothing else: the floor for a query to nodes that are simulated on this machine. The nodes are
// spread over processes as those of `sonde simulate` are, and each process has one thread.
//
// bare_tree NODES FANOUT PROCESSES QUESTION-BYTES ANSWER-BYTES ROUNDS
// prints the median time of a round, and its processor time in all processes, in milliseconds.
#include "base/clock.h"
#include "wire/tree.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 256, WARM_UP = 3, BYTES_MAX = 1 << 16, SECONDS_MAX = 300 };

// The connection of a node and its parent. Node 0 has no parent.
struct edge {
    int up, down; // up: the parent's end
    size_t got;   // bytes of the answer so far
    size_t left;  // children whose answers are missing
};

static struct edge *edges;
static size_t nodes, fanout, processes, question_bytes, answer_bytes;
static int loop, *listeners; // one listener for each process
static struct sockaddr_in *addresses;
static _Atomic size_t *connected; // in all processes: the next node to be connected

static void fail(const char *what)
{
    fprintf(stderr, "bare_tree: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double cpu_ms(int who)
{
    struct rusage r;
    getrusage(who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
}

static void listen_all(void)
{
    socklen_t size = sizeof *addresses;
    listeners = calloc(processes + 1, sizeof *listeners);
    addresses = calloc(processes + 1, sizeof *addresses);
    for (size_t i = 0; i <= processes; i++) {
        addresses[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listeners[i], (struct sockaddr *)&addresses[i], size) || listen(listeners[i], 1) ||
            getsockname(listeners[i], (struct sockaddr *)&addresses[i], &size))
            fail("cannot listen");
    }
}

static void send_all(int fd, size_t size)
{
    static const char bytes[BYTES_MAX];
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        fail("cannot send");
}

// Asks the children of a node. Returns false if it has none.
static bool ask_children(size_t node)
{
    size_t first = node * fanout + 1, end = first + fanout < nodes ? first + fanout : nodes;
    for (size_t i = first; i < end; i++) {
        edges[i].got = 0;
        send_all(edges[i].up, question_bytes);
    }
    edges[node].left = first < end ? end - first : 0;
    return first < end;
}

// Returns true when node 0 has all answers.
static bool take_answer(size_t child)
{
    static char bytes[BYTES_MAX];
    size_t parent = wire_tree_parent(child, fanout);
    ssize_t n = read(edges[child].up, bytes, sizeof bytes);
    if (n <= 0)
        fail("a node has ended");
    edges[child].got += (size_t)n;
    if (edges[child].got < answer_bytes || --edges[parent].left > 0)
        return false;
    if (parent)
        send_all(edges[parent].down, answer_bytes);
    return !parent;
}

static void take_question(size_t node)
{
    char bytes[BYTES_MAX];
    if (read(edges[node].down, bytes, question_bytes) <= 0)
        exit(0); // the first process has ended
    if (!ask_children(node))
        send_all(edges[node].down, answer_bytes);
}

// Node 0 is in the first process; the others are spread over processes 1 to `processes`.
static size_t process_of(size_t node)
{
    return node ? 1 + (node - 1) % processes : 0;
}

static void run_loop(void)
{
    struct epoll_event events[EVENTS];
    for (bool over = false; !over;) {
        int n = epoll_wait(loop, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            size_t node = (size_t)(events[i].data.u64 >> 1);
            if (events[i].data.u64 & 1)
                over |= take_answer(node);
            else
                take_question(node);
        }
    }
}

static void add_end(int fd, size_t node, bool up)
{
    int on = 1;
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = node << 1 | up};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e))
        fail("cannot watch a connection");
}

// Connects a node of this process with its parent in process `to`.
static void connect_to(size_t node, size_t to)
{
    edges[node].down = socket(AF_INET, SOCK_STREAM, 0);
    if (edges[node].down < 0 ||
        connect(edges[node].down, (struct sockaddr *)&addresses[to], sizeof *addresses))
        fail("cannot connect");
    add_end(edges[node].down, node, false);
}

// Makes the connections of a process. The processes connect the nodes one after another.
static void become(size_t process)
{
    loop = epoll_create1(0);
    for (size_t i = 1; i < nodes; i++) {
        size_t parent = process_of(wire_tree_parent(i, fanout));
        bool own = process_of(i) == process;
        while ((own || parent == process) && atomic_load(connected) < i)
            sched_yield();
        if (own)
            connect_to(i, parent);
        if (parent != process)
            continue;
        if ((edges[i].up = accept(listeners[process], NULL, NULL)) < 0)
            fail("cannot accept");
        add_end(edges[i].up, i, true);
        atomic_store(connected, i + 1);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return fputs("usage: bare_tree NODES FANOUT PROCESSES QUESTION-BYTES ANSWER-BYTES ROUNDS\n",
                     stderr),
               2;
    size_t rounds = (size_t)atol(argv[6]);
    nodes = (size_t)atol(argv[1]);
    fanout = (size_t)atol(argv[2]);
    processes = (size_t)atol(argv[3]);
    question_bytes = (size_t)atol(argv[4]);
    answer_bytes = (size_t)atol(argv[5]);
    edges = calloc(nodes, sizeof *edges);
    double *times = calloc(rounds, sizeof *times);
    if (!edges || !times || !rounds || question_bytes > BYTES_MAX || answer_bytes > BYTES_MAX)
        fail("unusable numbers");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit); // a process needs a descriptor for each end of a connection
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    connected =
        mmap(NULL, sizeof *connected, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (connected == MAP_FAILED)
        fail("cannot share memory");
    atomic_store(connected, 1);
    listen_all();
    for (size_t i = 1; i <= processes; i++)
        if (fork() == 0) {
            alarm(SECONDS_MAX);
            become(i);
            run_loop();
            return 0;
        }
    alarm(SECONDS_MAX); // if a process fails, the others end, too
    become(0);
    for (size_t i = 0; i < WARM_UP; i++) {
        ask_children(0);
        run_loop();
    }
    double own = cpu_ms(RUSAGE_SELF);
    for (size_t i = 0; i < rounds; i++) {
        int64_t from_ns = clock_monotonic_ns();
        ask_children(0);
        run_loop();
        times[i] = (double)(clock_monotonic_ns() - from_ns) / NS_PER_MS;
    }
    own = cpu_ms(RUSAGE_SELF) - own;
    for (size_t i = 1; i < nodes; i++)
        if (process_of(wire_tree_parent(i, fanout)) == 0)
            close(edges[i].up);
    while (wait(NULL) > 0)
        ;
    qsort(times, rounds, sizeof *times, compare);
    // The children's time includes their start and the first rounds.
    printf("%.1f %.1f\n", times[rounds / 2],
           own / (double)rounds + cpu_ms(RUSAGE_CHILDREN) / (double)(rounds + WARM_UP));
    return 0;
}
