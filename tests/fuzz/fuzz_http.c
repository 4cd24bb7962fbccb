// Sends the input as a client without a token, over a real connection, to a real server with its
// acceptor, HTTP library and table of routes. The server survives, and only the open routes answer
// 200. If the first byte is 'T', the client has the view token, and every status is allowed.
#include "aggregator/aggregator.h"
#include "http/tokens.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct aggregator *server;
static char control[TOKEN_TEXT_MAX], view[TOKEN_TEXT_MAX], folder[] = "/tmp/sonde-fuzz-XXXXXX";

static void stop(void)
{
    aggregator_stop(server);
    rmdir(folder);
}

static void start(void)
{
    struct error e = {0};
    const char *paths[] = {mkdtemp(folder)};
    if (!paths[0] || token_make(control, &e) != 0)
        abort();
    struct aggregator_options options = {.paths = paths,
                                         .path_count = 1,
                                         .port = 20000 + (int)(getpid() % 20000),
                                         .token = control,
                                         .agent_socket = "/nowhere/agent.sock"};
    if (aggregator_start(&options, &server, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    token_of_role(str_of(control), ROLE_VIEW, view); // a token that permits no changes
    atexit(stop);
}

static int reach(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)aggregator_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct linger at_once = {.l_onoff = 1};      // frees the port at once, so that ports suffice
    struct timeval patience = {.tv_usec = 5000}; // for a connection that the server keeps open
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        abort();
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

// Reads the server's output until the connection closes, or nothing more arrives.
static void talk(const void *bytes, size_t size, struct buf *out)
{
    char piece[4096];
    int fd = reach();
    ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL); // fails if the server has refused the request
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0)
        buf_add(out, piece, (size_t)n);
    close(fd);
}

// Checks that each answer with status 200 is one of an open route, because no other route answers a
// client without a token.
static void check_answers(struct str said)
{
    static const struct str ok = {"HTTP/1.1 200", sizeof "HTTP/1.1 200" - 1};
    ptrdiff_t at;
    while ((at = str_find(said, ok)) >= 0) {
        said = str_slice(said, (size_t)at + ok.size, said.size);
        ptrdiff_t end = str_find(said, STR("\r\n\r\n"));
        if (str_find(end < 0 ? said : str_slice(said, 0, (size_t)end),
                     STR("Content-Type: text/plain")) < 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf said = {0}, sent = {0};
    if (!server)
        start();
    bool admitted = size && data[0] == 'T';
    if (admitted) {
        struct str rest = {(const char *)data + 1, size - 1}, line = str_cut(&rest, '\n');
        buf_printf(&sent, "%.*s\nAuthorization: Bearer %s\r\n", STR_ARG(line), view);
        buf_add_str(&sent, rest.data ? rest : STR("\r\n"));
    } else {
        buf_add(&sent, data, size);
    }
    talk(sent.data ? sent.data : "", sent.size, &said);
    if (!admitted)
        check_answers(buf_str(&said));
    if (said.size && (str_find(buf_str(&said), str_of(control)) >= 0 ||
                      str_find(buf_str(&said), str_of(view)) >= 0))
        abort(); // no answer contains a token
    buf_free(&said);
    buf_free(&sent);
    return 0;
}
