#include "client/proved.h"

#include "base/clock.h"
#include "http/server_proof.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MAX = 4096 }; // bytes with the headers

struct asking {
    int fd;
    int64_t deadline_ns;
    const char *name; // the address as text
    struct error *e;
};

static int wait_for(const struct asking *a, short events)
{
    struct pollfd p = {.fd = a->fd, .events = events};
    int ready;
    do {
        int64_t left_ns = a->deadline_ns - clock_monotonic_ns();
        ready = left_ns <= 0 ? 0 : poll(&p, 1, (int)(left_ns / NS_PER_MS) + 1);
    } while (ready < 0 && errno == EINTR);
    return ready > 0 ? 0 : error_set(a->e, -ETIMEDOUT, "%s does not answer in time", a->name);
}

static int connect_to(const struct asking *a, const struct sockaddr *address, socklen_t size)
{
    int code = 0;
    socklen_t code_size = sizeof code;
    if (connect(a->fd, address, size) == 0)
        return 0;
    if (errno == EINPROGRESS) {
        int status = wait_for(a, POLLOUT);
        if (status < 0)
            return status;
        getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &code, &code_size);
    } else {
        code = errno;
    }
    return code ? error_set(a->e, -code, "%s: %s", a->name, strerror(code)) : 0;
}

static int ask(const struct asking *a, const char *nonce)
{
    char text[256];
    size_t size = (size_t)snprintf(text, sizeof text,
                                   "GET " SERVER_PROOF_PATH
                                   "?nonce=%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sonde\r\n\r\n",
                                   nonce, a->name);
    for (size_t done = 0; done < size;) {
        ssize_t n = send(a->fd, text + done, size - done, MSG_NOSIGNAL);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return error_set(a->e, -errno, "%s: %s", a->name, strerror(errno));
        else if (wait_for(a, POLLOUT) < 0)
            return a->e->code;
    }
    return 0;
}

// Returns the value of Content-Length, or SIZE_MAX if it is missing or invalid.
static size_t body_size(struct str head)
{
    uint64_t size;
    for (struct str rest = head; rest.data;) {
        struct str value = str_cut(&rest, '\n'), name = str_cut(&value, ':');
        if (value.data && str_eq_nocase(str_trim(name), STR("content-length")) &&
            str_to_u64(str_trim(value), &size) && size < ANSWER_MAX)
            return (size_t)size;
    }
    return SIZE_MAX;
}

// Reads one response, and not a byte more, because libcurl reads the next one. Returns its body, or
// an empty text if it is not a proof.
static int read_answer(const struct asking *a, char text[ANSWER_MAX], struct str *body)
{
    size_t size = 0, head = 0, more = 1;
    *body = (struct str){0};
    while (more > 0) {
        if (size == ANSWER_MAX)
            return 0;
        // Reads the headers byte by byte. After the body, the server sends nothing before our next
        // request.
        ssize_t n = recv(a->fd, text + size, head ? more : 1, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            int status = wait_for(a, POLLIN);
            if (status < 0)
                return status;
            continue;
        }
        if (n < 0)
            return error_set(a->e, -errno, "%s: %s", a->name, strerror(errno));
        if (n == 0)
            return 0;
        size += (size_t)n;
        if (head) {
            more -= (size_t)n;
        } else if (size >= 4 && memcmp(text + size - 4, "\r\n\r\n", 4) == 0) {
            head = size;
            more = body_size((struct str){text, head});
            if (!str_starts((struct str){text, head}, STR("HTTP/1.1 200 ")) ||
                more > ANSWER_MAX - head)
                return 0;
        }
    }
    *body = (struct str){text + head, size - head};
    return 0;
}

static int prove(const struct asking *a, const char *there, struct str token, bool same_address)
{
    char nonce[SERVER_NONCE_CHARACTERS + 1], text[ANSWER_MAX];
    struct str answer, address;
    if (!server_nonce_make(nonce))
        return error_set(a->e, -EIO, "no random numbers: %s", strerror(errno));
    int status = ask(a, nonce);
    if (status == 0)
        status = read_answer(a, text, &answer);
    if (status < 0)
        return status;
    if (!server_proof_check(answer, token, str_of(nonce), &address))
        return error_set(a->e, -EACCES,
                         "the server at %s does not know the job's token, so it was not sent: the "
                         "token is wrong, or "
                         "the job has ended and another program has its port",
                         a->name);
    if (same_address && !str_eq(address, str_of(there)))
        return error_set(a->e, -EACCES,
                         "the server at %s answers for another one, at %.*s: the job's token was "
                         "not sent; to go through "
                         "a tunnel or proxy, give the address with its token (http://…/?token=…)",
                         a->name, STR_ARG(address));
    return 0;
}

int proved_connect(const struct sockaddr *address, socklen_t size, struct str token,
                   bool same_address, int64_t deadline_ns, struct error *e)
{
    char name[SERVER_ADDRESS_MAX];
    if (!server_address_text(address, name))
        return error_set(e, -EAFNOSUPPORT, "not an address of IPv4 or IPv6");
    struct asking a = {
        .fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
        .deadline_ns = deadline_ns,
        .name = name,
        .e = e,
    };
    if (a.fd < 0)
        return error_set(e, -errno, "cannot make a socket: %s", strerror(errno));
    int status = connect_to(&a, address, size);
    if (status == 0)
        status = prove(&a, name, token, same_address);
    if (status < 0) {
        close(a.fd);
        return status;
    }
    return a.fd;
}
