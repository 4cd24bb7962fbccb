#include "launch/tunnel.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/ssh.h"
#include "launch/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

// ---------------------------------------------------------------- the line for people

bool tunnel_line(const struct job *job, char out[TUNNEL_LINE_MAX])
{
    const char *scheme = strstr(job->url, "://"), *host = scheme ? scheme + 3 : "",
               *colon = strrchr(host, ':');
    size_t size = colon ? (size_t)(colon - host) : 0;
    struct str name = {host, size};
    bool loopback = str_starts(name, STR("127.")) || str_eq(name, STR("localhost")) ||
                    str_eq(name, STR("[::1]"));
    out[0] = 0;
    if (loopback)
        snprintf(out, TUNNEL_LINE_MAX, "ssh -NL %s:%.*s:%s %s", colon + 1, STR_ARG(name), colon + 1,
                 job->host);
    return loopback;
}

bool tunnel_needed(void)
{
    static const char *const signs[] = {"SSH_CONNECTION", "SLURM_JOB_ID", "PBS_JOBID"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *value = getenv(signs[i]);
        if (value && *value)
            return true;
    }
    return false;
}

// ---------------------------------------------------------------- the reverse tunnel

void tunnel_init(struct tunnel *t, const char *node, int port)
{
    *t = (struct tunnel){.node = node, .port = port, .wait_ms = TUNNEL_WAIT_MIN_MS};
    channel_none(&t->channel);
}

void tunnel_target(struct tunnel *t, const char *address, int bind)
{
    bool any = !address[0] || strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    if (any)
        address = "127.0.0.1";
    if (!t->node || t->stopped || (bind == t->bind && strcmp(address, t->address) == 0))
        return;
    snprintf(t->address, sizeof t->address, "%s", address);
    t->bind = bind;
    t->moved = t->channel.pid > 0;
    if (t->moved)
        kill(t->channel.pid, SIGTERM); // the next tunnel leads to the new address
    else
        t->next_ns = clock_monotonic_ns();
}

int tunnel_fd(const struct tunnel *t)
{
    return t->node ? t->channel.words : -1;
}

int64_t tunnel_due_ns(const struct tunnel *t)
{
    return t->next_ns;
}

static void on_word(void *user, const char *line)
{
    struct tunnel *t = user;
    if (line[0])
        snprintf(t->reason, sizeof t->reason, "%s", line);
}

// Reports once that the tunnel is not open, and schedules the next try.
static void wait_for_next(struct tunnel *t)
{
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns - t->began_ns > (int64_t)TUNNEL_WAIT_MAX_MS * NS_PER_MS)
        t->wait_ms = TUNNEL_WAIT_MIN_MS;
    if (!t->failure_reported)
        log_warning("the tunnel from %s is not open: %s; it is tried again and again, which is not "
                    "said any more",
                    t->node, t->reason);
    t->failure_reported = true;
    t->next_ns = now_ns + t->wait_ms * NS_PER_MS;
    t->wait_ms = t->wait_ms * 2 < TUNNEL_WAIT_MAX_MS ? t->wait_ms * 2 : TUNNEL_WAIT_MAX_MS;
}

static void open_tunnel(struct tunnel *t)
{
    char forward[TUNNEL_ADDRESS_MAX + 64];
    bool v6 = strchr(t->address, ':') != NULL;
    snprintf(forward, sizeof forward, "localhost:%d:%s%s%s:%d", t->port ? t->port : t->bind,
             v6 ? "[" : "", t->address, v6 ? "]" : "", t->bind);
    // It has its own connection, so it ends with us. If the port there is taken, ssh fails instead
    // of opening a connection without a tunnel.
    const char *const options[] = {"-N", "-R", forward, "-oExitOnForwardFailure=yes", NULL};
    struct ssh_words ssh;
    ssh_words(&ssh, options, 4, t->node, NULL);
    struct error e;
    t->next_ns = 0;
    t->reason[0] = 0;
    t->began_ns = clock_monotonic_ns();
    if (channel_start(&t->channel, ssh.argv, SIGTERM, &e) < 0) {
        snprintf(t->reason, sizeof t->reason, "%.*s", TUNNEL_REASON_MAX - 1, e.text);
        wait_for_next(t);
    }
}

void tunnel_turn(struct tunnel *t)
{
    if (tunnel_fd(t) >= 0)
        channel_read(&t->channel, true, on_word, t);
    if (t->next_ns && !t->stopped && clock_monotonic_ns() >= t->next_ns)
        open_tunnel(t);
}

bool tunnel_reaped(struct tunnel *t, pid_t pid, int status)
{
    if (!t->node || t->channel.pid != pid)
        return false;
    channel_read(&t->channel, true, on_word, t);
    channel_close(&t->channel);
    if (!t->reason[0])
        child_status_text(status, t->reason, sizeof t->reason);
    if (t->moved && !t->stopped)
        t->next_ns = clock_monotonic_ns();
    else if (!t->stopped)
        wait_for_next(t);
    t->moved = false;
    return true;
}

void tunnel_stop(struct tunnel *t, int signal)
{
    t->stopped = true;
    t->next_ns = 0;
    if (tunnel_pid(t))
        kill(tunnel_pid(t), signal);
}

pid_t tunnel_pid(const struct tunnel *t)
{
    return t->node ? t->channel.pid : 0;
}
