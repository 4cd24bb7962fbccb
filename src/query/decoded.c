// decoded.c - a hash table of entries and a list of them, the latest used first, under one lock.
//
// Series that are sampled together have the same time stamps: an entry shares them with the one that was kept before it of the same file or
// block, which halves both the memory and what goes through the processor's caches.
#include "query/decoded.h"

#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 1 << 14, // chains are short: 64 MiB hold a few thousand series of files, some ten thousand of blocks
    LATEST = 256,    // files and blocks whose latest time stamps are remembered
};

struct times {
    unsigned users; // entries
    size_t count;
    int64_t *t_ns;
    struct times **latest; // the place that remembers it, or did
};

struct kept {
    struct decoded_entry entry; // first: what callers hold points here
    struct times *times;        // the entry's t_ns
    uint64_t store;
    uint32_t series;
    unsigned users;
    bool gone; // replaced or evicted: freed with its last user
    size_t bytes;
    struct kept *chain, *newer, *older;
};

struct query_cache {
    pthread_mutex_t lock;
    size_t limit_bytes, bytes;
    struct kept *slots[SLOTS], *newest, *oldest;
    struct times *latest[LATEST]; // uses none of them
};

int query_cache_create(size_t limit_bytes, struct query_cache **out)
{
    struct query_cache *c = calloc(1, sizeof *c);
    *out = c;
    if (!c)
        return -ENOMEM;
    c->limit_bytes = limit_bytes;
    pthread_mutex_init(&c->lock, NULL);
    return 0;
}

static void free_entry(struct decoded_entry *entry)
{
    free(entry->runs);
    free(entry->t_ns);
    free(entry->values);
}

static size_t times_bytes(const struct times *times)
{
    return sizeof *times + times->count * sizeof *times->t_ns;
}

// Under the lock.
static void let_times_go(struct query_cache *c, struct times *times)
{
    if (--times->users)
        return;
    c->bytes -= times_bytes(times);
    if (*times->latest == times)
        *times->latest = NULL;
    free(times->t_ns);
    free(times);
}

// Likewise.
static void free_kept(struct query_cache *c, struct kept *k)
{
    c->bytes -= k->bytes;
    let_times_go(c, k->times);
    free(k->entry.runs);
    free(k->entry.values);
    free(k);
}

void query_cache_destroy(struct query_cache *c)
{
    if (!c)
        return;
    for (struct kept *k = c->newest, *older; k; k = older) {
        older = k->older;
        free_kept(c, k);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct kept **slot_of(struct query_cache *c, uint64_t store, uint32_t series)
{
    struct kept **at = &c->slots[hash_u64(store * 0x9e3779b97f4a7c15u + series) % SLOTS];
    while (*at && ((*at)->store != store || (*at)->series != series))
        at = &(*at)->chain;
    return at;
}

static void unlink_kept(struct query_cache *c, struct kept *k)
{
    *(k->newer ? &k->newer->older : &c->newest) = k->older;
    *(k->older ? &k->older->newer : &c->oldest) = k->newer;
}

static void put_first(struct query_cache *c, struct kept *k)
{
    k->newer = NULL;
    k->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = k;
    c->newest = k;
}

// What is in use still counts until its last user lets it go.
static void drop(struct query_cache *c, struct kept *k)
{
    *slot_of(c, k->store, k->series) = k->chain;
    unlink_kept(c, k);
    k->gone = true;
    if (!k->users)
        free_kept(c, k);
}

const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t store, uint32_t series, int64_t from_ns,
                                         int64_t to_ns)
{
    pthread_mutex_lock(&c->lock);
    struct kept *k = *slot_of(c, store, series);
    if (k && (from_ns < k->entry.from_ns || to_ns > k->entry.to_ns))
        k = NULL;
    if (k) {
        k->users++;
        unlink_kept(c, k);
        put_first(c, k);
    }
    pthread_mutex_unlock(&c->lock);
    return k ? &k->entry : NULL;
}

void decoded_let_go(struct query_cache *c, const struct decoded_entry *entry)
{
    struct kept *k = (struct kept *)(uintptr_t)entry;
    pthread_mutex_lock(&c->lock);
    if (--k->users == 0 && k->gone)
        free_kept(c, k);
    pthread_mutex_unlock(&c->lock);
}

// The time stamps as they are kept already, or as they are now; NULL: no memory. Not under the lock: comparing takes its time.
static struct times *share_times(struct query_cache *c, uint64_t store, struct decoded_entry *entry)
{
    struct times **latest = &c->latest[hash_u64(store) % LATEST];
    pthread_mutex_lock(&c->lock);
    struct times *times = *latest && (*latest)->count == entry->count ? *latest : NULL;
    if (times)
        times->users++;
    pthread_mutex_unlock(&c->lock);
    if (times && (!entry->count || memcmp(times->t_ns, entry->t_ns, entry->count * sizeof *entry->t_ns) == 0)) {
        free(entry->t_ns);
        entry->t_ns = times->t_ns;
        return times;
    }
    struct times *own = malloc(sizeof *own);
    if (own)
        *own = (struct times){1, entry->count, entry->t_ns, latest};
    pthread_mutex_lock(&c->lock);
    if (times)
        let_times_go(c, times);
    if (own) {
        c->bytes += times_bytes(own);
        *latest = own;
    }
    pthread_mutex_unlock(&c->lock);
    return own;
}

void decoded_keep(struct query_cache *c, uint64_t store, uint32_t series, struct decoded_entry entry)
{
    struct kept *k = calloc(1, sizeof *k);
    struct times *times = k ? share_times(c, store, &entry) : NULL;
    if (!times) {
        free(k);
        free_entry(&entry);
        return;
    }
    *k = (struct kept){.entry = entry, .times = times, .store = store, .series = series};
    k->bytes = sizeof *k + entry.run_count * sizeof *entry.runs + entry.count * sizeof *entry.values;
    pthread_mutex_lock(&c->lock);
    struct kept *before = *slot_of(c, store, series);
    if (before)
        drop(c, before);
    c->bytes += k->bytes;
    while (c->oldest && c->bytes > c->limit_bytes)
        drop(c, c->oldest);
    if (c->bytes <= c->limit_bytes) {
        *slot_of(c, store, series) = k;
        put_first(c, k);
    } else {
        free_kept(c, k);
    }
    pthread_mutex_unlock(&c->lock);
}

size_t query_cache_bytes(struct query_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}
