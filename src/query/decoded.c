// decoded.c - a hash table of entries in chunks of memory, under one lock, held for a microsecond.
//
//   chunk, 2 MiB in a huge page
//   ┌──────┬───────────────────────────┬───────────────┬───────────────┬───────┐
//   │ head │ entry, values, times      │ entry, values │ entry, values │ free  │
//   └──────┴───────────────────────────┴───────────────┴───────────────┴───────┘
//
// Entries are appended to the newest chunk, and chunks are evicted as a whole, the oldest one
// first. If queries have found half of it since it was put last, it is put last once more instead.
// So an entry costs no malloc, and finding one, thousands of times in a query, touches only that
// entry. An evicted chunk is freed after the last release of its entries.
//
// A first answer fills megabytes of the cache. In pages of 4 KiB, their page faults took a third of
// its processor time. The system clears a huge page at its first access, and may move other pages
// for it: together another sixth, and sometimes 10 ms. Prepared chunks have this behind them.
//
// Series that are sampled together have the same time stamps. An entry shares them with an earlier
// entry of the same block in its chunk. That halves both the memory and the traffic through the
// processor's caches. The border of two blocks of points may lie between the series of one instant;
// so a block has two lists of time stamps, which differ in the first one or in their number.
#include "query/decoded.h"

#include "base/adaptive_lock.h"
#include "base/hash.h"
#include "base/huge_pages.h"
#include "base/list.h"
#include "base/memory_account.h"
#include "base/process_memory.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    // At first, the table has a slot for this many bytes of the cache, because entries usually have
    // 1,000 values or so. If they are smaller, it grows to a slot for each entry, …
    SLOT_BYTES = 4096,
    SLOTS_MIN = 64,
    SLOTS_MAX = 1 << 14,
    // … but to at most so many times as many slots: 1/32 of the cache's bytes.
    SLOTS_GROWTH = 16,
    LATEST_SHARE = 8, // the cache remembers one list of time stamps for so many of the first slots
    RECLAIM_BYTES = 4 << 20,
    // A chunk is at most this part of the cache, because a chunk is evicted as a whole, …
    CHUNKS_MIN = 16,
    // … and at most this large. The first one is smaller, for processes that ask little.
    CHUNK_BYTES = HUGE_PAGE_BYTES,
    FIRST_CHUNK_BYTES = 256 << 10,
    PREPARED_CHUNKS = 2,
};

struct chunk {
    struct list_link of_cache;
    uint64_t number;
    size_t bytes, used;
    // its entries that are in the table or in use, and threads that read or write in it
    size_t holds;
    bool evicted;
    unsigned round;     // number of times that it was put last
    size_t found_bytes; // of entries that queries have found in this round
    // its entries follow
};

struct kept {
    struct decoded_entry entry; // the first member, because callers hold pointers to it
    struct chunk *chunk;
    struct kept *chain;
    uint64_t block;
    uint32_t series;
    unsigned users;
    unsigned found; // the round of the chunk in which a query has found it, plus 1
    bool listed;    // in the table
    size_t bytes;
    double values[]; // the entry's: beside it, so that a query fetches both at once
};

// The time stamps of the last entry of a block with this number of points and this first one.
struct latest {
    uint64_t block, chunk; // chunk: the number of the chunk that has them
    const int64_t *t_ns;
    size_t count;
};

struct query_cache {
    pthread_mutex_t lock;
    size_t limit_bytes, bytes;      // bytes: of all chunks, and of slots since the start
    struct memory_account *account; // NULL: no accounting
    struct list_link chunks;        // oldest first, without evicted ones
    struct list_link prepared;      // chunks without entries
    struct chunk *filling;          // NULL: none
    struct kept *recent;            // the entry found last; NULL: none, or its chunk is gone
    uint64_t last_number;
    // The table grows slot by slot (linear hashing), so no entry waits until all have moved: slots
    // below `split` have been split in two, the second at `half` + its index.
    size_t half, split; // half: a power of two
    size_t slots_max, listed;
    struct kept **slots;
    size_t latest_count;
    struct latest *latest;
};

int query_cache_create(size_t limit_bytes, struct query_cache **out)
{
    size_t slots = SLOTS_MIN;
    while (slots < SLOTS_MAX && slots < limit_bytes / SLOT_BYTES)
        slots *= 2;
    size_t latest = slots / LATEST_SHARE, slots_max = slots * SLOTS_GROWTH;
    struct query_cache *c =
        calloc(1, sizeof *c + latest * sizeof *c->latest + slots_max * sizeof *c->slots);
    *out = c;
    if (!c)
        return -ENOMEM;
    c->limit_bytes = limit_bytes;
    c->half = slots;
    c->slots_max = slots_max;
    c->latest_count = latest;
    c->latest = (struct latest *)(void *)(c + 1);
    c->slots = (struct kept **)(void *)(c->latest + latest);
    list_init(&c->chunks);
    list_init(&c->prepared);
    pthread_mutex_init(&c->lock, NULL);
    return 0;
}

// ---- chunks; the caller holds the lock ----

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

// Ends a hold. The last one frees the chunk, unless it still takes entries.
static void let_go(struct query_cache *c, struct chunk *chunk)
{
    assert(chunk->holds);
    if (--chunk->holds || chunk == c->filling)
        return;
    if (c->recent && c->recent->chunk == chunk)
        c->recent = NULL;
    list_remove(&chunk->of_cache);
    take_bytes_off(c, chunk->bytes);
    huge_pages_free(chunk, chunk->bytes);
}

// Frees one prepared chunk. Returns false if no chunk is prepared.
static bool drop_prepared(struct query_cache *c)
{
    if (list_empty(&c->prepared))
        return false;
    struct chunk *chunk = LIST_OF(c->prepared.next, struct chunk, of_cache);
    list_remove(&chunk->of_cache);
    take_bytes_off(c, chunk->bytes);
    huge_pages_free(chunk, chunk->bytes);
    return true;
}

static uint64_t hash_of(uint64_t block, uint32_t series)
{
    return hash_u64(block * 0x9e3779b97f4a7c15u + series);
}

static bool is_of(const struct kept *k, uint64_t block, uint32_t series)
{
    return k->block == block && k->series == series;
}

static struct kept **slot_of(struct query_cache *c, uint64_t block, uint32_t series)
{
    size_t slot = hash_of(block, series) & (2 * c->half - 1);
    struct kept **at = &c->slots[slot < c->half + c->split ? slot : slot - c->half];
    while (*at && !is_of(*at, block, series))
        at = &(*at)->chain;
    return at;
}

// Splits the next slot, if there is room: half of its entries move to a new one.
static void split_slot(struct query_cache *c)
{
    add_bytes(c, sizeof *c->slots);
    if (is_over(c)) {
        take_bytes_off(c, sizeof *c->slots);
        return;
    }
    struct kept **low = &c->slots[c->split], **high = low + c->half, *next = *low;
    *low = NULL;
    while (next) {
        struct kept *k = next;
        next = k->chain;
        struct kept **to = hash_of(k->block, k->series) & c->half ? high : low;
        k->chain = *to;
        *to = k;
    }
    if (++c->split == c->half) {
        c->half *= 2;
        c->split = 0;
    }
}

static void drop(struct query_cache *c, struct kept *k)
{
    c->listed--;
    *slot_of(c, k->block, k->series) = k->chain;
    k->listed = false;
    if (!k->users)
        let_go(c, k->chunk);
}

static struct kept *kept_at(struct chunk *chunk, size_t at)
{
    return (struct kept *)(void *)((char *)chunk + at);
}

static void evict_chunk(struct query_cache *c, struct chunk *chunk)
{
    if (chunk == c->filling)
        c->filling = NULL;
    list_remove(&chunk->of_cache);
    chunk->evicted = true;
    chunk->holds++;
    for (size_t at = sizeof *chunk; at < chunk->used; at += kept_at(chunk, at)->bytes)
        if (kept_at(chunk, at)->listed)
            drop(c, kept_at(chunk, at));
    let_go(c, chunk);
}

// Evicts the oldest chunk of which queries have not found half since it was put last.
static void evict(struct query_cache *c)
{
    for (;;) {
        struct chunk *oldest = LIST_OF(c->chunks.next, struct chunk, of_cache);
        if (oldest->found_bytes < oldest->used / 2) {
            evict_chunk(c, oldest);
            return;
        }
        oldest->round++;
        oldest->found_bytes = 0;
        list_remove(&oldest->of_cache);
        list_append(&c->chunks, &oldest->of_cache);
    }
}

size_t decoded_limit(const struct query_cache *c)
{
    return c->account && c->account->limit_bytes < c->limit_bytes ? c->account->limit_bytes
                                                                  : c->limit_bytes;
}

// Returns a prepared chunk with room for an entry of this size, or NULL.
static struct chunk *take_prepared(struct query_cache *c, size_t entry_bytes)
{
    if (list_empty(&c->prepared) || CHUNK_BYTES < sizeof(struct chunk) + entry_bytes)
        return NULL;
    struct chunk *chunk = LIST_OF(c->prepared.next, struct chunk, of_cache);
    list_remove(&chunk->of_cache);
    return chunk;
}

// Returns a new chunk with room for an entry of this size. Returns NULL if there is no memory, or
// if the chunk does not fit into the cache even after all others are evicted.
static struct chunk *alloc_chunk(struct query_cache *c, size_t entry_bytes)
{
    size_t bytes = decoded_limit(c) / CHUNKS_MIN, most = c->bytes ? CHUNK_BYTES : FIRST_CHUNK_BYTES;
    bytes = bytes < most ? bytes : most;
    if (bytes < sizeof(struct chunk) + entry_bytes)
        bytes = sizeof(struct chunk) + entry_bytes;
    add_bytes(c, bytes);
    while (is_over(c) && drop_prepared(c))
        ;
    while (is_over(c) && !list_empty(&c->chunks))
        evict(c);
    struct chunk *chunk = is_over(c) ? NULL : huge_pages_alloc(bytes);
    if (chunk)
        chunk->bytes = bytes;
    else
        take_bytes_off(c, bytes);
    return chunk;
}

static struct chunk *start_chunk(struct query_cache *c, size_t entry_bytes)
{
    struct chunk *chunk = take_prepared(c, entry_bytes);
    if (!chunk)
        chunk = alloc_chunk(c, entry_bytes);
    if (!chunk)
        return NULL;
    *chunk =
        (struct chunk){.number = ++c->last_number, .bytes = chunk->bytes, .used = sizeof *chunk};
    list_append(&c->chunks, &chunk->of_cache);
    struct chunk *before = c->filling;
    c->filling = chunk;
    if (before) { // its entries may all be gone
        before->holds++;
        let_go(c, before);
    }
    return chunk;
}

void query_cache_prepare(struct query_cache *c)
{
    bool room = decoded_limit(c) / CHUNKS_MIN >= CHUNK_BYTES;
    for (int i = 0; i < PREPARED_CHUNKS && room; i++) {
        adaptive_lock(&c->lock);
        add_bytes(c, CHUNK_BYTES);
        room = !is_over(c);
        pthread_mutex_unlock(&c->lock);
        struct chunk *chunk = room ? huge_pages_alloc(CHUNK_BYTES) : NULL;
        if (chunk) {
            process_memory_touch(chunk, CHUNK_BYTES);
            chunk->bytes = CHUNK_BYTES;
        }
        adaptive_lock(&c->lock);
        if (chunk)
            list_append(&c->prepared, &chunk->of_cache);
        else
            take_bytes_off(c, CHUNK_BYTES);
        pthread_mutex_unlock(&c->lock);
        room = chunk;
    }
}

void query_cache_destroy(struct query_cache *c)
{
    if (!c)
        return;
    while (drop_prepared(c))
        ;
    while (!list_empty(&c->chunks))
        evict_chunk(c, LIST_OF(c->chunks.next, struct chunk, of_cache));
    take_bytes_off(c, c->bytes); // of the table
    pthread_mutex_destroy(&c->lock);
    free(c);
}

// ---- entries ----

// Returns the entry that was appended after the one found last, if it is this one; else NULL.
// Queries find entries in the order in which the first one has appended them. Beside each other
// they are in the processor's cache, other than the slots of a large table.
static struct kept *find_beside(struct query_cache *c, uint64_t block, uint32_t series)
{
    if (!c->recent)
        return NULL;
    struct chunk *chunk = c->recent->chunk;
    size_t at = (size_t)((char *)c->recent - (char *)chunk) + c->recent->bytes;
    if (at >= chunk->used)
        return NULL;
    struct kept *k = kept_at(chunk, at);
    return k->listed && is_of(k, block, series) ? k : NULL;
}

const struct decoded_entry *decoded_find(struct query_cache *c, uint64_t block, uint32_t series)
{
    adaptive_lock(&c->lock);
    struct kept *k = find_beside(c, block, series);
    if (!k)
        k = *slot_of(c, block, series);
    if (k) {
        c->recent = k;
        k->users++;
        if (k->found != k->chunk->round + 1) {
            k->found = k->chunk->round + 1;
            k->chunk->found_bytes += k->bytes;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return k ? &k->entry : NULL;
}

void decoded_release(struct query_cache *c, const struct decoded_entry *entry)
{
    struct kept *k = (struct kept *)(uintptr_t)entry;
    adaptive_lock(&c->lock);
    assert(k->users);
    if (--k->users == 0 && !k->listed)
        let_go(c, k->chunk);
    pthread_mutex_unlock(&c->lock);
}

static size_t room_of(const struct chunk *chunk)
{
    return chunk ? chunk->bytes - chunk->used : 0;
}

static struct latest *latest_of(struct query_cache *c, uint64_t block, const int64_t *t_ns,
                                size_t count)
{
    uint64_t hash = hash_u64(block * 0x9e3779b97f4a7c15u + count + (uint64_t)*t_ns);
    return &c->latest[hash & (c->latest_count - 1)];
}

// Returns the time stamps of the block's last entry in the current chunk if they are equal,
// otherwise NULL. The caller holds the lock; it is free while the time stamps are compared, because
// that takes time.
static const int64_t *find_times(struct query_cache *c, uint64_t block, const int64_t *t_ns,
                                 size_t count)
{
    struct chunk *chunk = c->filling;
    struct latest latest = *latest_of(c, block, t_ns, count);
    if (!chunk || latest.chunk != chunk->number || latest.block != block || latest.count != count)
        return NULL;
    chunk->holds++;
    pthread_mutex_unlock(&c->lock);
    bool same = memcmp(latest.t_ns, t_ns, count * sizeof *t_ns) == 0;
    adaptive_lock(&c->lock);
    same &= chunk == c->filling;
    let_go(c, chunk);
    return same ? latest.t_ns : NULL;
}

// Takes room for an entry, which is not listed yet. It has time stamps if it shares them, otherwise
// room for them after its values. The caller holds the lock.
static struct kept *reserve(struct query_cache *c, uint64_t block, uint32_t series,
                            const int64_t *t_ns, size_t count)
{
    const int64_t *times = find_times(c, block, t_ns, count);
    size_t bytes = sizeof(struct kept) + count * sizeof(double), times_bytes = count * sizeof *t_ns;
    if (times && room_of(c->filling) < bytes)
        times = NULL;
    bytes += times ? 0 : times_bytes;
    struct chunk *chunk = room_of(c->filling) < bytes ? start_chunk(c, bytes) : c->filling;
    if (!chunk)
        return NULL;
    struct kept *k = kept_at(chunk, chunk->used);
    *k = (struct kept){.entry = {times, k->values, count},
                       .chunk = chunk,
                       .block = block,
                       .series = series,
                       .bytes = bytes};
    chunk->used += bytes;
    chunk->holds++;
    return k;
}

// Puts a complete entry into the table. The caller holds the lock.
static void list_entry(struct query_cache *c, struct kept *k)
{
    if (k->chunk->evicted) {
        let_go(c, k->chunk);
        return;
    }
    struct kept *before = *slot_of(c, k->block, k->series);
    if (before)
        drop(c, before);
    *slot_of(c, k->block, k->series) = k;
    k->listed = true;
    if (++c->listed > c->half + c->split && c->half + c->split < c->slots_max)
        split_slot(c);
    const struct decoded_entry *e = &k->entry;
    *latest_of(c, k->block, e->t_ns, e->count) =
        (struct latest){k->block, k->chunk->number, e->t_ns, e->count};
}

void decoded_keep(struct query_cache *c, uint64_t block, uint32_t series, const int64_t *t_ns,
                  const double *values, size_t count)
{
    if (!count)
        return;
    adaptive_lock(&c->lock);
    struct kept *k = reserve(c, block, series, t_ns, count);
    pthread_mutex_unlock(&c->lock);
    if (!k)
        return;
    memcpy(k->values, values, count * sizeof *values);
    if (!k->entry.t_ns) {
        k->entry.t_ns = (int64_t *)(void *)(k->values + count);
        memcpy(k->values + count, t_ns, count * sizeof *t_ns);
    }
    adaptive_lock(&c->lock);
    list_entry(c, k);
    pthread_mutex_unlock(&c->lock);
}

void query_cache_shrink(struct query_cache *c, size_t bytes)
{
    adaptive_lock(&c->lock);
    size_t wanted = c->bytes > bytes ? c->bytes - bytes : 0;
    while (c->bytes > wanted && drop_prepared(c))
        ;
    while (!list_empty(&c->chunks) && c->bytes > wanted)
        evict(c);
    pthread_mutex_unlock(&c->lock);
}

// Chunks return to the system at once, but a request for a few bytes must not evict one each time.
static void reclaim(void *user, size_t bytes)
{
    query_cache_shrink(user, bytes > RECLAIM_BYTES ? bytes : RECLAIM_BYTES);
}

void query_cache_charge(struct query_cache *c, struct memory_account *account)
{
    c->account = account;
    account->reclaim = reclaim;
    account->user = c;
}

size_t query_cache_bytes(struct query_cache *c)
{
    adaptive_lock(&c->lock);
    size_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}
