// serve - runs the aggregator, for tests, with every option and limit on the command line.
//
//   serve [NAME=VALUE…] [--] PATH…
//
// Standard output is the control descriptor. The server writes "ready PORT" or "error TEXT" to it,
// with restarts=1 also the restarts that clients request, and ends when its other end is closed.
#include "aggregator/aggregator.h"
#include "base/clock.h"
#include "collect/collect.h"
#include "http/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Set by alias=OTHER:NAME; the aliases of the catalogue stay valid.
static struct str alias_of, alias_name;

static struct str resolve(struct str name)
{
    const struct collect_metric *known = collect_find(name);
    return str_eq(name, alias_of) ? alias_name : known ? known->metric.name : STR("");
}

// Set by token_file=FILE.
static const char *token_file;
static char token[TOKEN_TEXT_MAX];

static int64_t seconds(const char *text)
{
    return (int64_t)(strtod(text, NULL) * NS_PER_S);
}

static bool take(struct aggregator_options *o, struct str name, const char *value)
{
    struct service_limits *l = &o->limits;
    struct {
        const char *name;
        size_t *size;
        unsigned *count;
        int64_t *duration_ns;
    } limits[] = {
        {"body_bytes", &l->body_bytes, NULL, NULL},
        {"header_bytes", &l->header_bytes, NULL, NULL},
        {"query_memory_bytes", &l->query_memory_bytes, NULL, NULL},
        {"answer_bytes", &l->answer_bytes, NULL, NULL},
        {"total_memory_bytes", &l->total_memory_bytes, NULL, NULL},
        {"slow_queries", NULL, &l->slow_queries, NULL},
        {"slow_after_s", NULL, NULL, &l->slow_after_ns},
        {"connections", NULL, &l->connections, NULL},
        {"connections_per_client", NULL, &l->connections_per_client, NULL},
        {"idle_timeout_s", NULL, NULL, &l->idle_timeout_ns},
        {"query_deadline_s", NULL, NULL, &l->query_deadline_ns},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!str_eq(name, str_of(limits[i].name)))
            continue;
        if (limits[i].size)
            *limits[i].size = strtoul(value, NULL, 10);
        if (limits[i].count)
            *limits[i].count = (unsigned)strtoul(value, NULL, 10);
        if (limits[i].duration_ns)
            *limits[i].duration_ns = seconds(value);
        return true;
    }
    if (str_eq(name, STR("token")))
        o->token = value;
    else if (str_eq(name, STR("cors")))
        o->cors = value;
    else if (str_eq(name, STR("token_file")))
        token_file = value;
    else if (str_eq(name, STR("cert")))
        o->tls_cert = value;
    else if (str_eq(name, STR("key")))
        o->tls_key = value;
    else if (str_eq(name, STR("listen")))
        o->listen = value;
    else if (str_eq(name, STR("port")))
        o->port = atoi(value);
    else if (str_eq(name, STR("exact")))
        o->port_exact = atoi(value);
    else if (str_eq(name, STR("agent")))
        o->agent_socket = value;
    else if (str_eq(name, STR("job")))
        o->job = value;
    else if (str_eq(name, STR("replay")))
        o->replay = atoi(value);
    else if (str_eq(name, STR("now")))
        o->as_if_now = atoi(value);
    else if (str_eq(name, STR("restarts")))
        o->restarts = atoi(value);
    else if (str_eq(name, STR("open_view")))
        o->open_view = atoi(value);
    else if (str_eq(name, STR("dragon")))
        o->dragon_compatible = atoi(value);
    else if (str_eq(name, STR("alias"))) {
        alias_name = str_of(value);
        alias_of = str_cut(&alias_name, ':');
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct aggregator_options options = {
        .level = 2, .resolve_alias = resolve, .alias_at = collect_alias};
    int i = 1;
    for (; i < argc && argv[i][0] != '/' && strcmp(argv[i], "--") != 0; i++) {
        struct str value = str_of(argv[i]), name = str_cut(&value, '=');
        if (!value.data || !take(&options, name, value.data)) {
            fprintf(stderr, "serve: unknown argument %s\n", argv[i]);
            return 2;
        }
    }
    i += i < argc && strcmp(argv[i], "--") == 0;
    options.paths = (const char *const *)argv + i;
    options.path_count = (size_t)(argc - i);
    struct error e;
    if (token_file && token_read(token_file, false, token, &e) != 0) {
        printf("error %s\n", e.text);
        return 1;
    }
    if (token_file)
        options.token = token;
    return aggregator_run(&options, STDOUT_FILENO, NULL) ? 1 : 0;
}
