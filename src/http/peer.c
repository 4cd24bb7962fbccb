#include "http/peer.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool read_end(const struct sockaddr *from, struct peer_end *out)
{
    *out = (struct peer_end){0};
    if (from && from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        memcpy(out->address, &v6->sin6_addr, PEER_ADDRESS_BYTES);
        out->port = v6->sin6_port;
        return true;
    }
    if (from && from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(out->address, mapped, sizeof mapped);
        memcpy(out->address + sizeof mapped, &v4->sin_addr, sizeof v4->sin_addr);
        out->port = v4->sin_port;
        return true;
    }
    return false;
}

static bool is_v4(const struct peer_end *end)
{
    return memcmp(end->address, mapped, sizeof mapped) == 0;
}

static bool is_loopback(const struct peer_end *end)
{
    struct in6_addr v6;
    memcpy(&v6, end->address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6) || (is_v4(end) && end->address[sizeof mapped] == 127);
}

// ---- sock_diag

static void put_address(uint32_t out[4], const struct peer_end *end)
{
    if (is_v4(end))
        memcpy(out, end->address + sizeof mapped, sizeof out[0]);
    else
        memcpy(out, end->address, PEER_ADDRESS_BYTES);
}

// True if the message is about this connection. If the connection is gone, the kernel answers with
// a listening socket instead.
static bool is_answer(const struct inet_diag_msg *m, const struct inet_diag_sockid *asked)
{
    enum { TCP_LISTENING = 10 };
    return m->idiag_state != TCP_LISTENING && m->idiag_inode &&
           m->id.idiag_sport == asked->idiag_sport && m->id.idiag_dport == asked->idiag_dport;
}

// Fills *p if the socket exists and the kernel provides its data.
static void ask_kernel(const struct peer_end *own, const struct peer_end *client, struct peer *p)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } ask = {.header = {.nlmsg_len = sizeof ask,
                        .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                        .nlmsg_flags = NLM_F_REQUEST},
             .request = {.sdiag_family = is_v4(client) ? AF_INET : AF_INET6,
                         .sdiag_protocol = IPPROTO_TCP,
                         .idiag_states = UINT32_MAX,
                         .id = {.idiag_sport = client->port,
                                .idiag_dport = own->port,
                                .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    put_address(ask.request.id.idiag_src, client);
    put_address(ask.request.id.idiag_dst, own);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return;
    _Alignas(struct nlmsghdr) char answer[1024];
    struct sockaddr_nl from = {.nl_pid = 1};
    socklen_t from_size = sizeof from;
    // The kernel's answer is available when send() returns.
    ssize_t n = send(fd, &ask, sizeof ask, 0) == (ssize_t)sizeof ask
                    ? recvfrom(fd, answer, sizeof answer, MSG_DONTWAIT, (struct sockaddr *)&from,
                               &from_size)
                    : -1;
    close(fd);
    const struct nlmsghdr *header = (const void *)answer;
    const struct inet_diag_msg *m = NLMSG_DATA(header);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof *m) || from.nl_pid != 0 ||
        header->nlmsg_type != SOCK_DIAG_BY_FAMILY || !is_answer(m, &ask.request.id))
        return;
    p->known = true;
    p->uid = m->idiag_uid;
    p->inode = m->idiag_inode;
}

// ---- /proc/net/tcp

// Writes an address in the format of the file: each group of 32 bits as a number in host byte
// order.
static void write_end(const struct peer_end *end, bool v4, char out[48])
{
    size_t from = v4 ? sizeof mapped : 0, at = 0;
    for (size_t i = from; i < PEER_ADDRESS_BYTES; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, end->address + i, sizeof word);
        at += (size_t)snprintf(out + at, 48 - at, "%08X", (unsigned)word);
    }
    snprintf(out + at, 48 - at, ":%04X", (unsigned)ntohs(end->port));
}

static void search_table(const char *path, bool v4, const struct peer_end *own,
                         const struct peer_end *client, struct peer *p)
{
    char here[48], there[48], line[512], local[80], remote[80];
    write_end(client, v4, here);
    write_end(own, v4, there);
    FILE *f = fopen(path, "re");
    while (f && !p->known && fgets(line, sizeof line, f)) {
        unsigned uid;
        unsigned long long inode;
        if (sscanf(line, "%*u: %79s %79s %*s %*s %*s %*s %u %*u %llu", local, remote, &uid,
                   &inode) != 4)
            continue;
        if (strcmp(local, here) != 0 || strcmp(remote, there) != 0 || !inode)
            continue;
        p->known = true;
        p->uid = uid;
        p->inode = inode;
    }
    if (f)
        fclose(f);
}

void peer_look_in_proc(struct peer *p)
{
    if (p->local && !p->known && is_v4(&p->other))
        search_table("/proc/net/tcp", true, &p->own, &p->other, p);
    if (p->local && !p->known) // also finds v6 sockets with v4 addresses
        search_table("/proc/net/tcp6", false, &p->own, &p->other, p);
}

// ---- peer_look

void peer_look(int fd, const struct sockaddr *client, struct peer *out)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    *out = (struct peer){0};
    bool named = getsockname(fd, (struct sockaddr *)&address, &size) == 0;
    // The server listens on no Unix socket (listen_take), so such a connection comes from the hub.
    out->holds_key =
        named && address.ss_family == AF_UNIX && client && client->sa_family == AF_UNIX;
    if (out->holds_key || !read_end(client, &out->other))
        return;
    bool has_own = named && read_end((const struct sockaddr *)&address, &out->own);
    out->local = is_loopback(&out->other) ||
                 (has_own && memcmp(out->own.address, out->other.address, PEER_ADDRESS_BYTES) == 0);
    if (has_own && out->local)
        ask_kernel(&out->own, &out->other, out);
}

const struct peer *peer_lookup_get(struct peer_lookup *lookup)
{
    if (!lookup->done)
        peer_look(lookup->fd, lookup->client, &lookup->peer);
    lookup->done = true;
    return &lookup->peer;
}

bool peer_is_own(const struct peer *p)
{
    return p->local && p->known && p->uid == geteuid();
}

bool peer_equal(const struct peer *a, const struct peer *b)
{
    if (a->known && b->known)
        return a->uid == b->uid;
    return memcmp(a->other.address, b->other.address, PEER_ADDRESS_BYTES) == 0 &&
           a->known == b->known && a->holds_key == b->holds_key;
}

// ---- the process behind a socket

static bool holds(int proc, const char *pid, const char *wanted)
{
    char path[32], target[64];
    snprintf(path, sizeof path, "%.16s/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *fds = fd < 0 ? NULL : fdopendir(fd);
    if (!fds) {
        if (fd >= 0)
            close(fd);
        return false; // the process has ended, or is protected from inspection
    }
    bool found = false;
    for (struct dirent *entry = readdir(fds); entry && !found; entry = readdir(fds)) {
        ssize_t n = readlinkat(fd, entry->d_name, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        found = strcmp(target, wanted) == 0;
    }
    closedir(fds);
    return found;
}

static bool is_ssh(int proc, const char *pid)
{
    char path[32], target[4096];
    snprintf(path, sizeof path, "%.16s/exe", pid);
    ssize_t n = readlinkat(proc, path, target, sizeof target - 1);
    if (n <= 0)
        return true; // processes that cannot be inspected are not trusted
    target[n] = 0;
    const char *name = strrchr(target, '/');
    return strncmp(name ? name + 1 : target, "ssh", 3) == 0;
}

bool peer_is_program_here(const struct peer *p)
{
    char wanted[64];
    if (!peer_is_own(p))
        return false;
    snprintf(wanted, sizeof wanted, "socket:[%llu]", (unsigned long long)p->inode);
    DIR *proc = opendir("/proc");
    if (!proc)
        return false;
    bool here = false, forwarded = false;
    for (struct dirent *entry = readdir(proc); entry; entry = readdir(proc)) {
        struct stat st;
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            fstatat(dirfd(proc), entry->d_name, &st, 0) != 0 || st.st_uid != geteuid() ||
            !holds(dirfd(proc), entry->d_name, wanted))
            continue;
        here = true;
        forwarded |= is_ssh(dirfd(proc), entry->d_name);
    }
    closedir(proc);
    return here && !forwarded;
}
