#include "launch/shutdown.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/descendants.h"
#include "launch/folder.h"
#include "launch/supervisor.h"
#include "wire/ended_line.h"

#include <inttypes.h>
#include <signal.h>

enum {
    KILL_WAIT_MS = 2000,  // for a killed process to end
    KEEP_WAIT_MS = 30000, // for other nodes to move their recordings to their folders
    LOOK_SELDOM_MS = 1000,
};

static bool is_telemetry(void *user, pid_t child)
{
    const struct launch *l = user;
    return child == l->agent.child.pid || child == l->aggregator.child.pid ||
           child == tunnel_pid(&l->tunnel) || nodes_owns(l->nodes, child);
}

void shutdown_command(struct launch *l)
{
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)(l->o->stop_timeout_s * NS_PER_S);
    size_t left = descendants_signal(SIGTERM, is_telemetry, l);
    while ((l->command > 0 || left > 0) && clock_monotonic_ns() < deadline_ns) {
        supervisor_turn(l, clock_monotonic_ns() + (int64_t)LAUNCH_LOOK_MS * NS_PER_MS);
        left = descendants_signal(0, is_telemetry, l);
    }
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while ((l->command > 0 || left > 0) && clock_monotonic_ns() < deadline_ns) {
        left = descendants_signal(SIGKILL, is_telemetry, l);
        supervisor_turn(l, clock_monotonic_ns() + (int64_t)LAUNCH_LOOK_MS * NS_PER_MS);
    }
}

// Waits for the other nodes, which have been told to end: each ends its agent and moves its
// recording to its folder.
static void stop_nodes(struct launch *l, int64_t began_ns)
{
    int64_t deadline_ns =
        began_ns + (int64_t)(l->o->stop_timeout_s * NS_PER_S) + (int64_t)KEEP_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && !l->hurry && clock_monotonic_ns() < deadline_ns)
        supervisor_turn(l, deadline_ns);
    if (nodes_running(l->nodes))
        nodes_kill(l->nodes);
    deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
    while (nodes_running(l->nodes) && clock_monotonic_ns() < deadline_ns)
        supervisor_turn(l, deadline_ns);
}

// Lets the other nodes close their files. The aggregator fetches the files that are not in a shared
// folder.
static void gather(struct launch *l)
{
    char words[160];
    if (!l->hub_port || l->aggregator.child.state != CHILD_READY)
        return;
    nodes_gather_begin(l->nodes);
    while (nodes_gather(l->nodes, supervisor_tell_aggregator, l, words, sizeof words) &&
           l->aggregator.child.state == CHILD_READY && !l->hurry) {
        if (words[0])
            log_say("%s", words);
        supervisor_turn(l, clock_monotonic_ns() + (int64_t)LOOK_SELDOM_MS * NS_PER_MS);
    }
}

static void stop_tunnel(struct launch *l)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    for (size_t i = 0; i < 2; i++) {
        int64_t deadline_ns = clock_monotonic_ns() + (int64_t)KILL_WAIT_MS * NS_PER_MS;
        tunnel_stop(&l->tunnel, signals[i]);
        while (tunnel_pid(&l->tunnel) && clock_monotonic_ns() < deadline_ns)
            supervisor_turn(l, deadline_ns);
    }
}

void shutdown_telemetry(struct launch *l, bool keep)
{
    if (l->ended_pid && l->agent.child.state == CHILD_READY)
        child_tell(&l->agent.child, ENDED_VERB " %d %" PRIu64, (int)l->ended_pid, l->ended_us);
    agent_process_stop(&l->agent);
    if (keep)
        gather(l);
    int64_t began_ns = clock_monotonic_ns();
    nodes_stop(l->nodes);
    child_stop(&l->aggregator.child);
    int64_t deadline_ns = clock_monotonic_ns() + (int64_t)(l->o->stop_timeout_s * NS_PER_S);
    while ((child_runs(&l->agent.child) || child_runs(&l->aggregator.child)) && !l->hurry &&
           clock_monotonic_ns() < deadline_ns)
        supervisor_turn(l, deadline_ns);
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
        supervisor_turn(l, deadline_ns);
    stop_nodes(l, began_ns);
    stop_tunnel(l);
}

void shutdown_unused(struct launch *l)
{
    shutdown_telemetry(l, false);
    folder_remove(l->job.folder, NULL);
}
