// peer.h - finds the process at the other end of a TCP connection within this machine.
//
//   source                         result                          cost      used for
//   sock_diag (netlink)            address and port ─▶ uid, inode  10 µs     every local connection
//   /proc/net/tcp, tcp6            the same, without sock_diag     some ms   control only
//   /proc/PID/fd of our processes  inode ─▶ process                some ms   collectors only
//
// No user can make a socket of another uid, so other users cannot deceive peer_is_own(). A
// forwarder can, because its socket belongs to our user. sshd serves `ssh -L` under the user's uid,
// but other processes may not inspect it. The ssh of `ssh -R` is recognised by its name. So
// peer_is_program_here() requires a process that we can inspect and that is not ssh. Any other
// forwarder that the user runs (socat, a notebook server's proxy) counts as a program of the user.
#ifndef SONDE_HTTP_PEER_H
#define SONDE_HTTP_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { PEER_ADDRESS_BYTES = 16 };

// One end of a connection: an address (IPv4 as ::ffff:a.b.c.d), and a port in network byte order.
struct peer_end {
    unsigned char address[PEER_ADDRESS_BYTES];
    uint16_t port;
};

struct peer {
    struct peer_end other, own; // own: set only if local
    bool local;                 // the client's end is on this machine
    bool known;                 // the kernel provided the fields below
    uid_t uid;
    uint64_t inode; // inode of its socket
    // A client on another node, whose relay has proved for it that it knows the job's key. The hub
    // hands over such connections (wire/hub_clients.h); they have an end on this machine, but the
    // client is not local.
    bool holds_key;
};

// Describes the client of the connection `fd`. If `client` is NULL, nothing is known about the
// client.
void peer_look(int fd, const struct sockaddr *client, struct peer *out);

// The peer of a connection, which is looked up at most once, when it is first needed.
struct peer_lookup {
    int fd;
    const struct sockaddr *client;
    bool done;
    struct peer peer;
};
const struct peer *peer_lookup_get(struct peer_lookup *lookup);

// Searches /proc/net/tcp for a local peer that is not known.
void peer_look_in_proc(struct peer *p);

bool peer_is_own(const struct peer *p);

// True if both are the same client: the same uid on this machine, from any of its addresses, or
// else the same address.
bool peer_equal(const struct peer *a, const struct peer *b);

// Searches /proc, which takes milliseconds.
bool peer_is_program_here(const struct peer *p);

#endif
