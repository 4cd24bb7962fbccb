// peer.h - the process at the other end of a TCP connection within this machine.
//
//   source                         gives                           cost      used for
//   sock_diag (netlink)            address and port ─▶ uid, inode  10 µs     every local connection
//   /proc/net/tcp, tcp6            the same, without sock_diag     some ms   control only
//   /proc/PID/fd of our processes  inode ─▶ process                some ms   collectors only
//
// Nobody can make a socket of another uid, so other users cannot deceive peer_is_own(). A forwarder
// can: the socket is its own. sshd runs `ssh -L` of a user under the user's uid, but forbids other
// processes to look into it; the ssh of `ssh -R` is known by its name. So peer_is_program_here()
// demands a process that we can see and that is not ssh. Any other forwarder that the user runs
// (socat, a notebook server's proxy) counts as a program of the user.
#ifndef SONDE_HTTP_PEER_H
#define SONDE_HTTP_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { PEER_ADDRESS_BYTES = 16 };

// One end of a connection: an address (v4 as ::ffff:a.b.c.d), a port in network order.
struct peer_end {
    unsigned char address[PEER_ADDRESS_BYTES];
    uint16_t port;
};

struct peer {
    struct peer_end other, own; // own: only where local
    bool local;                 // its other end is on this machine
    bool known;                 // the kernel told the rest
    uid_t uid;
    uint64_t inode; // of its socket
    // A client on another node, whose relay has proved for it that it knows the job's key. The hub
    // hands over such connections (wire/hub_clients.h); they have an end on this machine, but the
    // client is not local.
    bool holds_key;
};

// What the connection `fd` from `client` tells (NULL: nothing).
void peer_look(int fd, const struct sockaddr *client, struct peer *out);

// A local one that is not known is looked for in /proc/net/tcp.
void peer_look_in_proc(struct peer *p);

bool peer_is_own(const struct peer *p);

// The same client: one uid on this machine, whichever of its many addresses it comes from; else one
// address.
bool peer_equal(const struct peer *a, const struct peer *b);

// Looks through /proc: milliseconds.
bool peer_is_program_here(const struct peer *p);

#endif
