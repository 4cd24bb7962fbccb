#include "aggregator/dragon_port.h"

#include "base/log.h"

enum { DRAGON_BYTES = 4 << 20 }; // maximum size of a request

struct aggregator *dragon_port_start(int listen_fd, int port, const char *agent_socket)
{
    struct error e = {0};
    struct aggregator *g = NULL;
    struct aggregator_options options = {
        .listen = "127.0.0.1",
        .listen_fd = listen_fd,
        .port = port,
        .port_exact = true,
        .agent_socket = agent_socket,
        .only_dragon_points = true,
        .limits = {.query_memory_bytes = DRAGON_BYTES,
                   .total_memory_bytes = DRAGON_BYTES,
                   .slow_queries = 1},
    };
    if (aggregator_start(&options, &g, &e) != 0)
        log_warning("programs that import dragon.telemetry cannot write: %s", e.text);
    return g;
}
