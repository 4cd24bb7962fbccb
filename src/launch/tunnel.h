// tunnel.h - reaches the HTTP server from other machines through ssh tunnels.
//
//   the line      ssh -NL PORT:127.0.0.1:PORT NODE
//                 A person types it on their own machine, to reach a server on loopback.
//   the reverse   ssh -NR localhost:PORT:ADDRESS:BIND NODE
//                 While the job lives, NODE's loopback port leads to this machine through it.
//                 Clients need the token all the same.
//
// A tunnel that ends is opened again: first after TUNNEL_WAIT_MIN_MS; each further pause is twice
// as long, up to TUNNEL_WAIT_MAX_MS. A failure is reported once.
#ifndef SONDE_LAUNCH_TUNNEL_H
#define SONDE_LAUNCH_TUNNEL_H

#include "launch/channel.h"
#include "launch/job.h"

enum {
    TUNNEL_WAIT_MIN_MS = 1000,
    TUNNEL_WAIT_MAX_MS = 60000, // a tunnel that lasts this long resets the pause
    TUNNEL_ADDRESS_MAX = 256,
    TUNNEL_REASON_MAX = 300,
    TUNNEL_LINE_MAX = 256,
};

// ---- the command for people

// Writes the command. Returns false, with an empty line, if the server also listens on other
// addresses than loopback, or if there is no server.
bool tunnel_line(const struct job *job, char out[TUNNEL_LINE_MAX]);

// Whether the user's browser probably runs on another machine: the user has logged in over ssh, or
// this is a node of an allocation.
bool tunnel_needed(void);

// ---- the reverse tunnel

struct tunnel {
    const char *node; // NULL: no tunnel; outlives *t
    int port;         // on that node; 0: the server's own
    char address[TUNNEL_ADDRESS_MAX];
    int bind; // 0: not known yet
    struct channel channel;
    // next_ns: the time of the next try; 0: the tunnel is open, or stays closed
    int64_t began_ns, next_ns, wait_ms;
    bool failure_reported, stopped, moved; // moved: the next try leads to another address
    char reason[TUNNEL_REASON_MAX];
};

void tunnel_init(struct tunnel *t, const char *node, int port);

// Sets the server's address; an empty or wildcard address means 127.0.0.1. If the address has
// changed, the tunnel is opened anew.
void tunnel_target(struct tunnel *t, const char *address, int bind);

int tunnel_fd(const struct tunnel *t); // to poll for reading; -1: no tunnel process
// Returns the time (CLOCK_MONOTONIC) to call tunnel_turn; 0: only when tunnel_fd is readable.
int64_t tunnel_due_ns(const struct tunnel *t);
void tunnel_turn(struct tunnel *t);
bool tunnel_reaped(struct tunnel *t, pid_t pid, int status); // true: the tunnel's process

// Ends it; the process still has to be reaped while tunnel_pid is not 0.
void tunnel_stop(struct tunnel *t, int signal);
pid_t tunnel_pid(const struct tunnel *t); // 0: none

#endif
