// tunnel.h - ways to the HTTP server from other machines, by ssh.
//
//   the line    ssh -NL PORT:127.0.0.1:PORT NODE     what a person types on their own machine, to reach a server that listens on loopback
//   the reverse ssh -NR localhost:PORT:ADDRESS:BIND NODE     opened by us for the job's life: NODE's loopback port leads here. Who uses it needs the token all the same.
//
// A tunnel that ends is opened again, first after TUNNEL_WAIT_MIN_MS, then twice as long each time
// up to TUNNEL_WAIT_MAX_MS. Why it failed is said once.
#ifndef SONDE_LAUNCH_TUNNEL_H
#define SONDE_LAUNCH_TUNNEL_H

#include "launch/channel.h"
#include "launch/job.h"

enum {
    TUNNEL_WAIT_MIN_MS = 1000,
    TUNNEL_WAIT_MAX_MS = 60000, // also how long it has to hold for the wait to begin anew
    TUNNEL_ADDRESS_MAX = 256,
    TUNNEL_REASON_MAX = 300,
    TUNNEL_LINE_MAX = 256,
};

// ---- the line

// False, and an empty line: the server listens on other addresses than loopback, or there is none.
bool tunnel_line(const struct job *job, char out[TUNNEL_LINE_MAX]);

// Whether who sits here is likely to have their browser elsewhere: they came over ssh, or this is a
// node of an allocation.
bool tunnel_needed(void);

// ---- the reverse one

struct tunnel {
    const char *node; // NULL: there is none; outlives it
    int port;         // there; 0: the server's own
    char address[TUNNEL_ADDRESS_MAX];
    int bind; // 0: not known yet
    struct channel channel;
    int64_t began_ns, next_ns, wait_ms; // next: when it is opened; 0: it is open, or will not be
    bool said, stopped, moved;          // moved: it is to be opened to another place
    char reason[TUNNEL_REASON_MAX];
};

void tunnel_init(struct tunnel *t, const char *node, int port);

// The server listens there, an empty or wildcard address being 127.0.0.1. When that is another
// place than before, the tunnel is opened anew.
void tunnel_target(struct tunnel *t, const char *address, int bind);

int tunnel_fd(const struct tunnel *t); // to be watched for reading; -1: nothing to watch
int64_t tunnel_due_ns(
    // when to call tunnel_turn, CLOCK_MONOTONIC; 0: when tunnel_fd is readable only
    const struct tunnel *t);
void tunnel_turn(struct tunnel *t);
bool tunnel_reaped(struct tunnel *t, pid_t pid, int status); // true: it was ours

// Ends it; it has still to be reaped while tunnel_pid says who.
void tunnel_stop(struct tunnel *t, int signal);
pid_t tunnel_pid(const struct tunnel *t); // 0: none

#endif
