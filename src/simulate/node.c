#include "simulate/node.h"

#include "base/clock.h"
#include "store/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NODE_MEMORY_BYTES = 4 << 20 }; // memory limit of the node's writer, which needs far less

// The file need not survive a crash, so a sync does nothing.
static int no_sync(void *user, int fd)
{
    (void)user, (void)fd;
    return 0;
}

void simulated_host(size_t number, char out[SIMULATED_HOST_MAX])
{
    snprintf(out, SIMULATED_HOST_MAX, "n%05zu", number);
}

static int define(struct simulated_node *n, const struct simulated_metrics *metrics,
                  struct error *e)
{
    char uuid[SIMULATED_HOST_MAX + sizeof "GPU--0"];
    snprintf(uuid, sizeof uuid, "GPU-%s-0", n->host);
    const struct store_label labels[] = {
        {STR("gpu"), STR("0")}, {STR("host"), str_of(n->host)}, {STR("uuid"), str_of(uuid)}};
    const struct store_label *host = &labels[1];
    uint32_t *series = calloc(metrics->count, sizeof *series), metric;
    int rc = series ? 0 : -ENOMEM;
    for (size_t i = 0; i < metrics->count && rc == 0; i++) {
        rc = store_define_metric(n->store, &metrics->all[i].definition, &metric);
        if (rc == 0)
            rc = metrics->all[i].of_gpu
                     ? store_define_series(n->store, metric, labels,
                                           sizeof labels / sizeof labels[0], &series[i])
                     : store_define_series(n->store, metric, host, 1, &series[i]);
    }
    if (rc == 0)
        rc = store_define_set(n->store, series, metrics->count, &n->set);
    free(series);
    return rc ? error_set(e, rc, "cannot make the series of a simulated node: %s", strerror(-rc))
              : 0;
}

int simulated_node_make(struct simulated_node *n, const char *folder, size_t number,
                        const struct simulated_metrics *metrics, const char *job,
                        int64_t interval_ns, int64_t from_ns, int64_t to_ns, struct error *e)
{
    *n = (struct simulated_node){.number = number};
    simulated_host(number, n->host);
    static struct store_io io;
    io = store_io_real;
    io.sync = no_sync;
    io.flush_start = NULL;
    struct store_label meta[] = {{STR("host"), str_of(n->host)}, {STR("job"), str_of(job)}};
    struct store_options o = {.size_limit_bytes = simulated_file_bytes(metrics->count),
                              .memory_limit_bytes = NODE_MEMORY_BYTES,
                              .meta = meta,
                              .meta_count = sizeof meta / sizeof meta[0],
                              .io = &io};
    double *row = calloc(metrics->count, sizeof *row);
    int rc = row && asprintf(&n->path, "%s/%s.sonde", folder, n->host) >= 0
                 ? 0
                 : error_set(e, -ENOMEM, "no memory");
    if (rc == 0)
        rc = store_open(n->path, &o, &n->store, e);
    if (rc == 0)
        rc = define(n, metrics, e);
    for (int64_t t = from_ns; t < to_ns && rc == 0; t += interval_ns)
        simulated_node_sample(n, metrics, from_ns, t, row);
    if (rc == 0)
        rc = store_reader_open(n->path, &n->reader, e);
    free(row);
    if (rc)
        simulated_node_remove(n);
    return rc;
}

void simulated_node_sample(struct simulated_node *n, const struct simulated_metrics *metrics,
                           int64_t start_ns, int64_t t_ns, double *row)
{
    simulated_row(metrics, n->number, start_ns, t_ns, row);
    store_append_row(n->store, n->set, t_ns, row); // the store counts refused values
    // Spread over the nodes, so that they do not all tick at the same time.
    if ((n->samples++ + n->number) % SIMULATED_TICK_EACH == 0)
        store_tick(n->store, t_ns);
}

void simulated_node_remove(struct simulated_node *n)
{
    store_reader_close(n->reader);
    if (n->store)
        store_abandon(n->store);
    if (n->path)
        unlink(n->path);
    free(n->path);
    *n = (struct simulated_node){0};
}

// ---- answers ----

static int open_view(void *user, struct wire_view *out, struct error *e)
{
    struct simulated_node *n = user;
    struct store_snapshot **snapshot = malloc(sizeof *snapshot);
    if (snapshot)
        *snapshot = store_snapshot_open(n->reader);
    if (!snapshot || !*snapshot) {
        free(snapshot);
        return error_set(e, -ENOMEM, "no memory for an answer");
    }
    *out =
        (struct wire_view){.stores = snapshot, .readers = &n->reader, .count = 1, .user = snapshot};
    return 0;
}

static void close_view(void *user, struct wire_view *view)
{
    struct store_snapshot **snapshot = view->user;
    (void)user;
    store_snapshot_close(*snapshot);
    free(snapshot);
}

struct wire_source simulated_node_source(struct simulated_node *n)
{
    return (struct wire_source){open_view, close_view, n};
}
