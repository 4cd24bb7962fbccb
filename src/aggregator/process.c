// process.c - the aggregator as a process: the lines that it writes to its parent, and reads from
// it.
#include "aggregator/aggregator.h"
#include "aggregator/control.h"
#include "aggregator/dragon_port.h"
#include "aggregator/fetch.h"
#include "aggregator/node_lines.h"
#include "aggregator/request_times.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "wire/collector_line.h"
#include "wire/hub.h"

enum {
    LOOK_MS = 200, // interval of the checks of the nodes
    SAY_BYTES_MS = 1000,
};
static const int64_t CLOCK_OFFSET_MAX_NS = 10 * INT64_C(1000000);

// Facts about a node that the process has reported to its parent.
enum { REPORTED_UP = 1, REPORTED_CLOCK = 2 };

struct process {
    struct control control;
    struct hub *hub;
    struct map reported; // reported facts of each host
    struct arena hosts;  // names of the hosts
    struct str job;
    struct fetch *fetch; // NULL before the first fetch
    uint64_t moved_reported;
    int64_t bytes_reported_ns;
};

static void look_at_node(struct process *p, const struct hub_node *n)
{
    uint64_t *reported = map_get(&p->reported, n->host);
    struct str host = reported ? n->host : arena_str(&p->hosts, n->host);
    if (!reported && host.data)
        reported = map_add(&p->reported, host, NULL);
    if (!reported)
        return; // out of memory: reported later
    if (n->connected != (bool)(*reported & REPORTED_UP)) {
        control_say(&p->control, "node %.*s %s", STR_ARG(n->host), n->connected ? "up" : "lost");
        *reported ^= REPORTED_UP;
    }
    int64_t off_ns = n->offset_ns < 0 ? -n->offset_ns : n->offset_ns;
    if (n->offset_known && off_ns - n->offset_error_ns > CLOCK_OFFSET_MAX_NS &&
        !(*reported & REPORTED_CLOCK)) {
        log_warning("the clock of node %.*s is %.3f s %s this one's: its points lie beside those "
                    "of the same moment",
                    STR_ARG(n->host), (double)off_ns / NS_PER_S,
                    n->offset_ns > 0 ? "ahead of" : "behind");
        *reported |= REPORTED_CLOCK;
    }
}

static void look_at_nodes(struct process *p)
{
    struct arena arena = {0};
    const struct hub_node *nodes;
    size_t count = 0;
    if (hub_nodes(p->hub, &arena, &nodes, &count) == 0)
        for (size_t i = 0; i < count; i++)
            look_at_node(p, &nodes[i]);
    arena_free(&arena);
}

static void say_fetched(void *user, struct str host, const char *path, const char *problem)
{
    struct process *p = user;
    control_say(&p->control, "%s %.*s %s", path ? "fetched" : "unfetched", STR_ARG(host),
                path ? path : problem);
}

static void fetch_file(struct process *p, struct str rest)
{
    struct str host = str_cut(&rest, ' ');
    int rc = p->fetch ? 0 : fetch_create(p->hub, p->job, say_fetched, p, &p->fetch);
    if (!rc && host.size && rest.size)
        rc = fetch_add(p->fetch, host, rest);
    if (rc)
        say_fetched(p, host, NULL, strerror(-rc));
}

static void say_bytes(struct process *p)
{
    int64_t now_ns = clock_monotonic_ns();
    uint64_t moved = 0, bytes = p->fetch ? fetch_bytes(p->fetch, &moved) : 0;
    if (moved == p->moved_reported ||
        now_ns - p->bytes_reported_ns < (int64_t)SAY_BYTES_MS * NS_PER_MS)
        return;
    control_say(&p->control, "fetching %llu", (unsigned long long)bytes);
    p->moved_reported = moved;
    p->bytes_reported_ns = now_ns;
}

static void take_line(void *user, struct str line)
{
    struct process *p = user;
    struct str folder = line, word = str_cut(&folder, ' ');
    if (str_eq(word, STR("fetch")))
        fetch_file(p, folder);
    node_lines_take(p->hub, line);
}

static void say_reboot(void *user, struct str hosts)
{
    struct process *p = user;
    control_say(&p->control, "reboot %.*s", STR_ARG(hosts));
}

static void say_collector(void *user, struct str collector_line)
{
    struct process *p = user;
    control_say(&p->control, COLLECTOR_VERB " %.*s", STR_ARG(collector_line));
}

static void serve(struct process *p)
{
    if (!p->hub) {
        while (control_wait(&p->control, -1, NULL, NULL))
            ;
        return;
    }
    do {
        look_at_nodes(p);
        say_bytes(p);
    } while (control_wait(&p->control, LOOK_MS, take_line, p));
    fetch_destroy(p->fetch);
}

int aggregator_run(const struct aggregator_options *options, int control_fd, struct error *e)
{
    struct error own = {0};
    struct process p = {.job = str_of(options->job ? options->job : "")};
    struct aggregator *g = NULL;
    request_times_open(options->agent_socket, options->level);
    int rc = control_open(&p.control, control_fd, &own);
    struct aggregator_options with = *options;
    if (options->restarts && control_fd >= 0) {
        with.reboot = say_reboot;
        with.reboot_user = &p;
    }
    if (options->agent_socket && control_fd >= 0) {
        with.collector = say_collector;
        with.collector_user = &p;
    }
    if (!rc)
        rc = aggregator_start(&with, &g, &own);
    if (rc) {
        control_say(&p.control, "error %s", own.text);
    } else {
        struct aggregator *dragon =
            options->dragon_fd ? dragon_port_start(options->dragon_fd, 0, options->agent_socket)
                               : NULL;
        p.hub = aggregator_hub(g);
        if (p.hub)
            control_say(&p.control, "ready %d %d", aggregator_port(g), hub_port(p.hub));
        else
            control_say(&p.control, "ready %d", aggregator_port(g));
        serve(&p);
        aggregator_stop(dragon);
        aggregator_stop(g);
    }
    map_free(&p.reported);
    arena_free(&p.hosts);
    control_close(&p.control);
    if (rc && e)
        *e = own;
    return rc;
}
