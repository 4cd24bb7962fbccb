#include "cli/serve.h"

#include "base/clock.h"
#include "collect/collect.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { QUERY_MEMORY_BYTES = 256 << 20, ADDRESS_MAX = 320 };

int serve_token(const struct options *o, char out[TOKEN_TEXT_MAX], struct error *e)
{
    const char *path = options_text(o, OPT_TOKEN_FILE);
    if (path)
        return token_read(path, true, out, e);
    memcpy(out, o->auth_key, TOKEN_TEXT_MAX);
    return out[0] ? 0 : token_make(out, e);
}

struct service_limits serve_limits(const struct options *o)
{
    // Outside of a job, an option that the user has not given leaves the server's default limit.
    bool in_job = o->command == COMMAND_RUN || o->command == COMMAND_AGGREGATOR;
    bool query_given = in_job || o->value[OPT_QUERY_MEMORY].source > FROM_DEFAULT;
    bool all_given = in_job || o->value[OPT_AGGREGATOR_MEMORY].source > FROM_DEFAULT;
    size_t query = query_given ? (size_t)options_number(o, OPT_QUERY_MEMORY) : 0;
    size_t all = all_given ? (size_t)options_number(o, OPT_AGGREGATOR_MEMORY) / 2 : 0;
    return (struct service_limits){
        .connections = (unsigned)options_int(o, OPT_CONNECTIONS),
        .node_deadline_ns = (int64_t)(options_number(o, OPT_NODE_DEADLINE) * NS_PER_S),
        .query_deadline_ns = (int64_t)(options_number(o, OPT_QUERY_DEADLINE) * NS_PER_S),
        .query_memory_bytes = query_given || !all_given || all > QUERY_MEMORY_BYTES ? query : all,
        .total_memory_bytes = all_given && all < query ? query : all,
    };
}

int serve_until_signal(const struct aggregator_options *options, serve_ready_fn *ready, void *user,
                       struct error *e)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); // before any of its threads starts
    struct aggregator *aggregator;
    int status = aggregator_start(options, &aggregator, e);
    if (status < 0)
        return status;
    bool v6 = strchr(options->listen, ':') != NULL;
    char view[TOKEN_TEXT_MAX], address[ADDRESS_MAX], url[ADDRESS_MAX + TOKEN_TEXT_MAX + 16];
    token_of_role(str_of(options->token), ROLE_VIEW, view);
    snprintf(address, sizeof address, "http%s://%s%s%s:%d", options->tls_cert ? "s" : "",
             v6 ? "[" : "", options->listen, v6 ? "]" : "", aggregator_port(aggregator));
    snprintf(url, sizeof url, "%s/?token=%s", address, view);
    ready(user, address, url);
    int number;
    sigwait(&ends, &number);
    aggregator_stop(aggregator);
    return 0;
}

static void print_address(void *user, const char *address, const char *url)
{
    const bool *shown = user;
    fprintf(stderr, "sonde: %s\n", *shown ? url : address);
}

int serve_by_hand(const struct aggregator_options *options, bool from_file, struct error *e)
{
    bool shown = !from_file || isatty(STDERR_FILENO);
    return serve_until_signal(options, print_address, &shown, e);
}

struct str serve_other_name(struct str name)
{
    // Only Dragon's own runtime measures this metric; Dragon's dashboards request it together with
    // others.
    static const struct str of_dragon = STR("def_pool_utilization");
    const struct collect_metric *known = collect_find(name);
    return known ? known->metric.name : str_eq(name, of_dragon) ? of_dragon : STR("");
}
