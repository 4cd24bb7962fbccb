// Real stores in a temporary folder: live, or (with WORLD_CLOSED in the environment) written,
// closed and reopened.
#include "unit/query/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { METRICS_MAX = 64 };

struct world {
    char *folder, *path[WORLD_STORES_MAX];
    struct store *stores[WORLD_STORES_MAX];
    struct store_reader *readers[WORLD_STORES_MAX];
    struct store_snapshot *open[WORLD_STORES_MAX];
    size_t open_count;
    bool opened;
};

static void check(int r, const struct error *e)
{
    if (r == 0)
        return;
    fprintf(stderr, "world: %d %s\n", r, e ? e->text : "");
    abort();
}

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->folder = strdup("/tmp/sonde-query-test-XXXXXX");
    if (!mkdtemp(w->folder))
        abort();
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < w->open_count; i++)
        store_snapshot_close(w->open[i]);
    for (size_t i = 0; i < WORLD_STORES_MAX; i++) {
        if (w->readers[i])
            store_reader_close(w->readers[i]);
        if (w->stores[i])
            store_abandon(w->stores[i]);
        if (w->path[i])
            unlink(w->path[i]);
        free(w->path[i]);
    }
    rmdir(w->folder);
    free(w->folder);
    free(w);
}

uint32_t world_series(struct world *w, unsigned store, const char *metric, const char *tags)
{
    struct error e;
    if (!w->stores[store]) {
        struct store_options options = {0};
        if (asprintf(&w->path[store], "%s/%u.sonde", w->folder, store) < 0)
            abort();
        check(store_open(w->path[store], &options, &w->stores[store], &e), &e);
    }
    uint32_t m, id;
    check(store_define_metric(w->stores[store], &(struct store_metric){.name = str_of(metric)}, &m),
          NULL);
    struct store_label labels[STORE_LABELS_MAX];
    size_t count = 0;
    struct str rest = str_of(tags);
    while (rest.size) {
        struct str value = str_cut(&rest, ','), key = str_cut(&value, '=');
        labels[count++] = (struct store_label){key, value};
    }
    check(store_define_series(w->stores[store], m, labels, count, &id), NULL);
    return id;
}

void world_add(struct world *w, unsigned store, uint32_t series, int64_t t_ns, double value)
{
    check(store_append(w->stores[store], series, t_ns, value), NULL);
}

struct store_snapshot *const *world_stores(struct world *w, size_t *count)
{
    struct error e;
    for (size_t i = 0; i < WORLD_STORES_MAX && !w->opened; i++) {
        if (!w->stores[i])
            continue;
        if (getenv("WORLD_CLOSED")) {
            check(store_close(w->stores[i], &e), &e);
            w->stores[i] = NULL;
        }
        check(store_reader_open(w->path[i], &w->readers[i], &e), &e);
        w->open[w->open_count++] = store_snapshot_open(w->readers[i]);
    }
    w->opened = true;
    *count = w->open_count;
    return w->open;
}

void world_run_length(struct world *w, size_t points)
{
    (void)w;
    (void)points;
}

bool world_is_sealed(void)
{
    return getenv("WORLD_CLOSED") != NULL;
}

bool world_heeds_run_length(void)
{
    return false;
}

uint64_t world_decoded(const struct world *w)
{
    (void)w;
    return 0;
}
