// peer.h - the process at the other end of a TCP connection, as far as the kernel tells: for connections within this machine, the uid that made its socket.
//
//   the kernel's table of sockets (sock_diag)              peer's address and port ─▶ uid, inode        10 µs: for every connection
//   /proc/net/tcp, tcp6, where the kernel has no sock_diag  the same, by reading all of it               milliseconds: for control only
//   /proc/PID/fd of our own processes                       inode ─▶ process                             milliseconds: likewise
//
// Nobody can make a socket of another uid, so peer_is_own() cannot be deceived by other users. Forwarded connections can be: the socket is that of the program
// that forwards. sshd runs a user's `ssh -L` under the user's uid, but other processes of that user cannot look into it; its ssh for `ssh -R` says its name.
// So peer_is_program_here() demands a process that we can see, and that is not ssh. Another forwarder that the user runs (socat, a notebook server's
// proxy) is a program of that user's, and counts as one.
#ifndef SONDE_AGGREGATOR_PEER_H
#define SONDE_AGGREGATOR_PEER_H

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
};

// What the connection `fd` from `client` tells (NULL: nothing).
void peer_look(int fd, const struct sockaddr *client, struct peer *out);

// A local one that is not known is looked for in /proc/net/tcp.
void peer_look_in_proc(struct peer *p);

bool peer_is_own(const struct peer *p);

// The same client: one address and, where that is known, one uid.
bool peer_equal(const struct peer *a, const struct peer *b);

// Looks through /proc: milliseconds.
bool peer_is_program_here(const struct peer *p);

#endif
