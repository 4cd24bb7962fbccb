#include "ask/known_metrics.h"

#include "base/arena.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>

struct known_metrics {
    pthread_mutex_t lock;
    struct arena names;
    struct map all;
};

struct known_metrics *known_metrics_create(void)
{
    struct known_metrics *k = calloc(1, sizeof *k);
    if (k)
        pthread_mutex_init(&k->lock, NULL);
    return k;
}

void known_metrics_destroy(struct known_metrics *k)
{
    if (!k)
        return;
    pthread_mutex_destroy(&k->lock);
    map_free(&k->all);
    arena_free(&k->names);
    free(k);
}

void known_metrics_add(struct known_metrics *k, struct str name)
{
    pthread_mutex_lock(&k->lock);
    if (k->all.count < KNOWN_METRICS_MAX && !map_get(&k->all, name)) {
        struct str kept = arena_str(&k->names, name);
        if (kept.data)
            map_add(&k->all, kept, NULL); // if memory is exhausted, the name is not remembered
    }
    pthread_mutex_unlock(&k->lock);
}

bool known_metrics_has(struct known_metrics *k, struct str name)
{
    pthread_mutex_lock(&k->lock);
    bool has = map_get(&k->all, name) != NULL;
    pthread_mutex_unlock(&k->lock);
    return has;
}
