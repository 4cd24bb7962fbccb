// decoded.c - a hash table of entries, and a list of them with the newest first, under one lock.
//
// The oldest entry is evicted. If a query has found it since it was put first, it is put first once
// more instead. So finding an entry, thousands of times in a query, touches only that entry.
//
// Series that are sampled together have the same time stamps. An entry shares them with the
// previous entry of the same block. That halves both the memory and the traffic through the
// processor's caches.
#include "query/decoded.h"

#include "base/hash.h"
#include "base/memory_account.h"
#include "base/process_memory.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 1 << 14, // chains are short: 64 MiB hold some ten thousand entries
    RECLAIM_BYTES = 4 << 20,
    LATEST = 256, // number of blocks whose latest time stamps the cache remembers
};

struct times {
    unsigned users; // number of entries
    size_t count;
    int64_t *t_ns;
    struct times **latest; // the slot that remembers these time stamps, or once did
};

struct kept {
    struct decoded_entry entry; // the first member, because callers hold pointers to it
    struct times *times;        // owns the entry's t_ns
    uint64_t block;
    uint32_t series;
    unsigned users;
    bool found; // since it was put first
    bool gone;  // replaced or evicted: its last user frees it
    size_t bytes;
    struct kept *chain, *newer, *older;
    double values[]; // the entry's: beside it, so that a query fetches both at once
};

struct query_cache {
    pthread_mutex_t lock;
    size_t limit_bytes, bytes;
    struct memory_account *account; // NULL: no accounting
    struct kept *slots[SLOTS], *newest, *oldest;
    struct times *latest[LATEST]; // `latest` does not count as a user of them
};

// The lock is held for about a microsecond, so a thread that finds it taken spins for a moment
// before it sleeps. Otherwise a report of 1,000 nodes in two threads slept 400,000 times, a quarter
// of its time.
static void make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

int query_cache_create(size_t limit_bytes, struct query_cache **out)
{
    struct query_cache *c = calloc(1, sizeof *c);
    *out = c;
    if (!c)
        return -ENOMEM;
    c->limit_bytes = limit_bytes;
    make_lock(&c->lock);
    return 0;
}

static void add_bytes(struct query_cache *c, size_t bytes)
{
    c->bytes += bytes;
    if (c->account)
        memory_account_add(c->account, bytes);
}

static void take_bytes_off(struct query_cache *c, size_t bytes)
{
    c->bytes -= bytes;
    if (c->account)
        memory_account_give(c->account, bytes);
}

static bool is_over(struct query_cache *c)
{
    return c->bytes > c->limit_bytes || (c->account && memory_account_is_over(c->account));
}

static size_t times_bytes(const struct times *times)
{
    return sizeof *times + times->count * sizeof *times->t_ns;
}

// The caller holds the lock.
static void let_times_go(struct query_cache *c, struct times *times)
{
    assert(times->users);
    if (--times->users)
        return;
    take_bytes_off(c, times_bytes(times));
    if (*times->latest == times)
        *times->latest = NULL;
    free(times->t_ns);
    free(times);
}

// The caller holds the lock.
static void free_kept(struct query_cache *c, struct kept *k)
{
    take_bytes_off(c, k->bytes);
    let_times_go(c, k->times);
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

static struct kept **slot_of(struct query_cache *c, uint64_t block, uint32_t series)
{
    struct kept **at = &c->slots[hash_u64(block * 0x9e3779b97f4a7c15u + series) % SLOTS];
    while (*at && ((*at)->block != block || (*at)->series != series))
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

// An entry in use counts towards the cache's size until its last user releases it.
static void drop(struct query_cache *c, struct kept *k)
{
    *slot_of(c, k->block, k->series) = k->chain;
    unlink_kept(c, k);
    k->gone = true;
    if (!k->users)
        free_kept(c, k);
}

// Drops the oldest entry that no query has found since it was put first.
static void evict(struct query_cache *c)
{
    struct kept *k = c->oldest;
    for (; k->found; k = c->oldest) {
        k->found = false;
        unlink_kept(c, k);
        put_first(c, k);
    }
    drop(c, k);
}

const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t block, uint32_t series)
{
    pthread_mutex_lock(&c->lock);
    struct kept *k = *slot_of(c, block, series);
    if (k) {
        k->users++;
        k->found = true;
    }
    pthread_mutex_unlock(&c->lock);
    return k ? &k->entry : NULL;
}

void decoded_release(struct query_cache *c, const struct decoded_entry *entry)
{
    struct kept *k = (struct kept *)(uintptr_t)entry;
    pthread_mutex_lock(&c->lock);
    assert(k->users);
    if (--k->users == 0 && k->gone)
        free_kept(c, k);
    pthread_mutex_unlock(&c->lock);
}

// Returns the time stamps of the block's last entry if they are equal, otherwise a copy; NULL
// without memory. The caller does not hold the lock, because comparing takes time.
static struct times *share_times(struct query_cache *c, uint64_t block, const int64_t *t_ns,
                                 size_t count)
{
    struct times **latest = &c->latest[hash_u64(block) % LATEST];
    pthread_mutex_lock(&c->lock);
    struct times *times = *latest && (*latest)->count == count ? *latest : NULL;
    if (times)
        times->users++;
    pthread_mutex_unlock(&c->lock);
    if (times && memcmp(times->t_ns, t_ns, count * sizeof *t_ns) == 0)
        return times;
    struct times *own = malloc(sizeof *own);
    int64_t *copy = own ? malloc(count * sizeof *copy) : NULL;
    pthread_mutex_lock(&c->lock);
    if (times)
        let_times_go(c, times);
    if (copy) {
        memcpy(copy, t_ns, count * sizeof *copy);
        *own = (struct times){1, count, copy, latest};
        add_bytes(c, times_bytes(own));
        *latest = own;
    }
    pthread_mutex_unlock(&c->lock);
    if (!copy)
        free(own);
    return copy ? own : NULL;
}

static struct kept *copy_points(struct query_cache *c, uint64_t block, uint32_t series,
                                const int64_t *t_ns, const double *values, size_t count)
{
    size_t bytes = sizeof(struct kept) + count * sizeof *values;
    struct kept *k = malloc(bytes);
    struct times *times = k ? share_times(c, block, t_ns, count) : NULL;
    if (!times) {
        free(k);
        return NULL;
    }
    *k = (struct kept){.entry = {times->t_ns, k->values, count},
                       .times = times,
                       .block = block,
                       .series = series,
                       .bytes = bytes};
    memcpy(k->values, values, count * sizeof *values);
    return k;
}

void decoded_keep(struct query_cache *c, uint64_t block, uint32_t series, const int64_t *t_ns,
                  const double *values, size_t count)
{
    struct kept *k = count ? copy_points(c, block, series, t_ns, values, count) : NULL;
    if (!k)
        return;
    pthread_mutex_lock(&c->lock);
    struct kept *before = *slot_of(c, block, series);
    if (before)
        drop(c, before);
    add_bytes(c, k->bytes);
    while (c->oldest && is_over(c))
        evict(c);
    if (!is_over(c)) {
        *slot_of(c, block, series) = k;
        put_first(c, k);
    } else {
        free_kept(c, k);
    }
    pthread_mutex_unlock(&c->lock);
}

void query_cache_shrink(struct query_cache *c, size_t bytes)
{
    pthread_mutex_lock(&c->lock);
    size_t wanted = c->bytes > bytes ? c->bytes - bytes : 0;
    while (c->oldest && c->bytes > wanted)
        evict(c);
    pthread_mutex_unlock(&c->lock);
}

// Entries are small blocks of malloc: a request can use their memory only after malloc has returned
// it to the system, which takes a millisecond. So reclaim drops entries in large steps.
static void reclaim(void *user, size_t bytes)
{
    size_t before = query_cache_bytes(user);
    query_cache_shrink(user, bytes > RECLAIM_BYTES ? bytes : RECLAIM_BYTES);
    if (query_cache_bytes(user) < before)
        process_memory_give_back();
}

void query_cache_charge(struct query_cache *c, struct memory_account *account)
{
    c->account = account;
    account->reclaim = reclaim;
    account->user = c;
}

size_t query_cache_bytes(struct query_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}
