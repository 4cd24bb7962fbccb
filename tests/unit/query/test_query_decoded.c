// The cache of decoded points: points are found instead of decoded, answers are identical, and the
// limit holds.
#include "base/memory_account.h"
#include "query/decoded.h"
#include "unit/query/ask.h"

#include <pthread.h>
#include <stdlib.h>

enum { HOSTS = 8, SECONDS = 3000, ROUNDS = 300 };

static uint64_t seed = 88172645463325252u;

static uint64_t random_bits(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static struct world *make_hosts(void)
{
    struct world *w = world_new();
    for (int i = 0; i < HOSTS; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=h%02d", i);
        uint32_t id = world_series(w, 0, "m", tags);
        for (int k = 0; k < SECONDS; k++)
            if (random_bits() % 16)
                world_add(w, 0, id, (T + k) * S, (double)(random_bits() % 100000) / 7);
    }
    world_run_length(w, 64);
    return w;
}

static void cached_points_are_not_decoded_again(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    struct query_cache *cache = cache_of(64 << 20);
    struct query_limits with = {.cache = cache};
    struct asked first = ask_with(w, "none:10s-avg:m", T, T + SECONDS, &with);
    // A file that grows still has most of the points in its tail.
    if (world_is_sealed())
        assert_true(query_cache_bytes(cache) > HOSTS * SECONDS / 2 * 8);
    uint64_t before = world_decoded(w);
    struct asked second = ask_with(w, "none:10s-avg:m", T, T + SECONDS, &with);
    assert_same(&first, &second, "again");
    asked_free(&second);
    // Windows that move, and cut the blocks at their ends.
    for (int from = 0; from < SECONDS; from += 7) {
        second = ask_with(w, "none:1s-max:m", T + from, T + from + 100, &with);
        asked_free(&second);
    }
    assert_int_equal(world_decoded(w), before);
    // A range up to now, and a little later: no points after the last one can be missing.
    for (int later = 0; later < 3; later++) {
        second = ask_with(w, "none:10s-avg:m", T, T + 2 * SECONDS + later, &with);
        assert_int_equal(world_decoded(w), before);
        asked_free(&second);
    }
    // Another file has blocks with other numbers.
    struct world *other = make_hosts();
    struct asked theirs = ask_with(other, "none:10s-avg:m", T, T + SECONDS, &with);
    struct asked plain = ask_with(other, "none:10s-avg:m", T, T + SECONDS, NULL);
    plain.result.points_read = theirs.result.points_read;
    assert_same(&theirs, &plain, "another file");
    asked_free(&theirs);
    asked_free(&plain);
    world_free(other);
    asked_free(&first);
    query_cache_destroy(cache);
    world_free(w);
}

static void answers_do_not_depend_on_the_cache(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    struct query_cache *cache = cache_of(200000); // about four of the eight series
    static const char *const m[] = {"sum:m",
                                    "none:m",
                                    "avg:7s-avg:m",
                                    "sum:100s-sum:m",
                                    "dev:500s-dev:m",
                                    "p90:30s-p50:m",
                                    "sum:1s-avg:rate:m",
                                    "none:0all-avg:m",
                                    "max:200s-max-zero:m"};
    struct query_limits with = {.cache = cache};
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from = T - 5 + (int64_t)(random_bits() % SECONDS),
                to = from + (int64_t)(random_bits() % SECONDS);
        const char *question = m[random_bits() % (sizeof m / sizeof *m)];
        struct asked kept = ask_with(w, question, from, to, &with),
                     plain = ask_with(w, question, from, to, NULL);
        assert_same(&kept, &plain, question);
        assert_true(query_cache_bytes(cache) <= 200000);
        asked_free(&kept);
        asked_free(&plain);
    }
    query_cache_destroy(cache);
    world_free(w);
}

// The cache counts against the account, never exceeds it, and shrinks for other users of it;
// answers stay the same.
static void cached_points_count_against_the_account(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    struct query_cache *cache = cache_of(64 << 20);
    struct memory_account account = {.limit_bytes = 200000};
    query_cache_charge(cache, &account);
    struct query_limits with = {.cache = cache};
    for (int round = 0; round < ROUNDS / 4; round++) {
        int64_t from = T - 5 + (int64_t)(random_bits() % SECONDS),
                to = from + (int64_t)(random_bits() % SECONDS);
        size_t taken = random_bits() % 200000;
        // nothing is in use, so the whole cache can be freed
        assert_true(memory_account_take(&account, taken));
        assert_int_equal(memory_account_held(&account), query_cache_bytes(cache) + taken);
        struct asked kept = ask_with(w, "none:m", from, to, &with),
                     plain = ask_with(w, "none:m", from, to, NULL);
        assert_same(&kept, &plain, "none:m");
        assert_int_equal(memory_account_held(&account), query_cache_bytes(cache) + taken);
        assert_true(memory_account_held(&account) <= account.limit_bytes);
        memory_account_give(&account, taken);
        asked_free(&kept);
        asked_free(&plain);
    }
    assert_false(memory_account_take(&account, 200001));
    query_cache_shrink(cache, SIZE_MAX);
    assert_int_equal(query_cache_bytes(cache), 0);
    assert_int_equal(memory_account_held(&account), 0);
    query_cache_destroy(cache);
    world_free(w);
}

// Prepared memory counts, is used first, and is freed first.
static void prepared_memory_is_used_and_freed(void **state)
{
    (void)state;
    struct world *w = make_hosts();
    enum { PREPARED = 4 << 20 };
    struct query_cache *cache = cache_of(64 << 20);
    struct memory_account account = {.limit_bytes = 64 << 20};
    query_cache_charge(cache, &account);
    query_cache_prepare(cache);
    assert_int_equal(query_cache_bytes(cache), PREPARED);
    assert_int_equal(memory_account_held(&account), PREPARED);
    struct query_limits with = {.cache = cache};
    for (int i = 0; i < 2; i++) {
        struct asked kept = ask_with(w, "none:10s-avg:m", T, T + SECONDS, &with),
                     plain = ask_with(w, "none:10s-avg:m", T, T + SECONDS, NULL);
        assert_same(&kept, &plain, "prepared");
        asked_free(&kept);
        asked_free(&plain);
        assert_int_equal(query_cache_bytes(cache), PREPARED);
    }
    uint64_t before = world_decoded(w);
    query_cache_shrink(cache, 1); // the other half
    assert_int_equal(query_cache_bytes(cache), PREPARED / 2);
    struct asked again = ask_with(w, "none:10s-avg:m", T, T + SECONDS, &with);
    asked_free(&again);
    assert_int_equal(world_decoded(w), before);
    query_cache_shrink(cache, SIZE_MAX);
    assert_int_equal(query_cache_bytes(cache), 0);
    assert_int_equal(memory_account_held(&account), 0);
    query_cache_destroy(cache);
    // A small cache, or an account without room, gets none.
    cache = cache_of(31 << 20);
    query_cache_prepare(cache);
    assert_int_equal(query_cache_bytes(cache), 0);
    query_cache_destroy(cache);
    cache = cache_of(64 << 20);
    account = (struct memory_account){.limit_bytes = 34 << 20};
    query_cache_charge(cache, &account);
    assert_true(memory_account_take(&account, 33 << 20));
    query_cache_prepare(cache);
    assert_int_equal(query_cache_bytes(cache), 0);
    assert_int_equal(memory_account_held(&account), 33 << 20);
    memory_account_give(&account, 33 << 20);
    query_cache_destroy(cache);
    world_free(w);
}

static int64_t zeros_t[10000];
static double zeros_v[10000];

// Points whose time stamps no other entry has.
static void keep_other(struct query_cache *cache, uint64_t block, uint32_t series, size_t count)
{
    static int64_t other;
    int64_t *t = calloc(count, sizeof *t);
    t[count - 1] = ++other;
    decoded_keep(cache, block, series, t, zeros_v, count);
    free(t);
}

static void equal_time_stamps_are_kept_once(void **state)
{
    (void)state;
    struct query_cache *cache = cache_of(64 << 20);
    // 30 times 8,000 bytes and the time stamps once are a little less than the first chunk.
    for (uint32_t i = 0; i < 30; i++)
        decoded_keep(cache, 1, i, zeros_t, zeros_v, 1000);
    assert_int_equal(query_cache_bytes(cache), 256 << 10);
    const struct decoded_entry *first = decoded_find(cache, 1, 0),
                               *last = decoded_find(cache, 1, 29);
    assert_ptr_equal(first->t_ns, last->t_ns);
    assert_ptr_not_equal(first->values, last->values);
    keep_other(cache, 1, 0, 1000);
    const struct decoded_entry *other = decoded_find(cache, 1, 0);
    assert_ptr_not_equal(first->t_ns, other->t_ns);
    assert_true(other->t_ns[999] != 0);
    decoded_release(cache, other);
    // They stay as long as an entry is in use.
    query_cache_shrink(cache, SIZE_MAX);
    assert_null(decoded_find(cache, 1, 1));
    decoded_release(cache, first);
    assert_true(last->t_ns[999] == 0);
    assert_true(query_cache_bytes(cache) > 0);
    decoded_release(cache, last);
    assert_int_equal(query_cache_bytes(cache), 0);
    query_cache_destroy(cache);
}

// The border of a block may lie between the series of one instant. So its series have one of two
// lists of time stamps, in any order.
static void both_lists_of_time_stamps_of_a_block_are_kept_once(void **state)
{
    (void)state;
    static int64_t later[1000];
    for (size_t i = 0; i < 1000; i++)
        later[i] = 1;
    for (size_t shorter = 0; shorter < 2; shorter++) {
        struct query_cache *cache = cache_of(64 << 20);
        const int64_t *lists[] = {zeros_t, shorter ? zeros_t : later};
        // 28 times 8,000 bytes and both lists are a little less than the first chunk.
        for (uint32_t i = 0; i < 28; i++)
            decoded_keep(cache, 1, i, lists[i % 2], zeros_v, 1000 - i % 2 * shorter);
        assert_int_equal(query_cache_bytes(cache), 256 << 10);
        query_cache_destroy(cache);
    }
}

// The table grows with the number of entries, and its bytes count. So finding a small entry does
// not walk along dozens of others.
static void small_entries_get_a_larger_table(void **state)
{
    (void)state;
    enum {
        ENTRIES = 120000,
        BLOCKS = 7,
        FIRST_CHUNK = 256 << 10,
        SLOTS = 1 << 14,
        LIMIT = 64 << 20
    };
    struct query_cache *cache = cache_of(LIMIT);
    static double values[ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
        values[i] = i;
        decoded_keep(cache, i % BLOCKS, i, zeros_t, &values[i], 1);
    }
    // Chunks are multiples of the first one; the table is the rest.
    assert_int_equal(query_cache_bytes(cache) % FIRST_CHUNK,
                     (ENTRIES - SLOTS) * sizeof(void *) % FIRST_CHUNK);
    // In the order of appending, and at random.
    for (uint32_t n = 0; n < 2 * ENTRIES; n++) {
        uint32_t i = n < ENTRIES ? n : (uint32_t)(random_bits() % ENTRIES);
        const struct decoded_entry *e = decoded_find(cache, i % BLOCKS, i);
        assert_non_null(e);
        assert_true(e->count == 1 && e->values[0] == i);
        decoded_release(cache, e);
        assert_null(decoded_find(cache, i % BLOCKS + 1, i));
    }
    // Replaced entries are found, evicted ones are not, and the limit holds with the table.
    for (uint32_t i = 0; i < 8 * ENTRIES; i++) {
        double other = -(double)i;
        decoded_keep(cache, i % BLOCKS, i / 2, zeros_t, &other, 1);
        const struct decoded_entry *e = decoded_find(cache, i % BLOCKS, i / 2);
        assert_true(e->values[0] == other);
        decoded_release(cache, e);
        assert_true(query_cache_bytes(cache) <= LIMIT);
    }
    assert_null(decoded_find(cache, 0, 0));
    query_cache_destroy(cache);
}

// Chunks of nine entries each.
static void the_oldest_chunk_goes_first(void **state)
{
    (void)state;
    struct query_cache *cache = cache_of(16 * 16384);
    unsigned asked_for = 5, found = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        keep_other(cache, 1, i, 100);
        assert_true(query_cache_bytes(cache) <= 16 * 16384);
        for (uint32_t k = 0; k < asked_for && k < i; k++) {
            const struct decoded_entry *e = decoded_find(cache, 1, k);
            assert_non_null(e); // more than half of its chunk is requested all the time
            assert_true(e->t_ns[99] != 0 && e->values[99] == 0);
            decoded_release(cache, e);
        }
    }
    bool before = false;
    for (uint32_t i = asked_for + 4; i < 1000; i++) {
        const struct decoded_entry *e = decoded_find(cache, 1, i);
        assert_true(e || !before);
        before = e != NULL;
        found += e != NULL;
        if (e)
            decoded_release(cache, e);
    }
    assert_in_range(found, 14 * 9 - 9, 15 * 9);
    query_cache_destroy(cache);
}

static void the_oldest_goes_first(void **state)
{
    (void)state;
    struct query_cache *cache = cache_of(100000);
    for (uint32_t i = 0; i < 10; i++) {
        keep_other(cache, 1, i, 1000); // a little over 16,000 bytes: six fit
        const struct decoded_entry *first = decoded_find(cache, 1, 0);
        assert_non_null(first); // requested all the time, so it stays
        decoded_release(cache, first);
    }
    unsigned there = 0;
    for (uint32_t i = 0; i < 10; i++) {
        const struct decoded_entry *e = decoded_find(cache, 1, i);
        there += e != NULL;
        if (e)
            decoded_release(cache, e);
    }
    assert_int_equal(there, 6);
    assert_null(decoded_find(cache, 2, 0));
    // While in use, it outlives its replacement and its eviction.
    const struct decoded_entry *held = decoded_find(cache, 1, 0);
    keep_other(cache, 1, 0, 10);
    keep_other(cache, 1, 50, 5000);
    assert_int_equal(held->count, 1000);
    assert_true(held->t_ns[998] == 0 && held->values[999] == 0);
    decoded_release(cache, held);
    keep_other(cache, 1, 51, 10000); // larger than all of it
    assert_null(decoded_find(cache, 1, 51));
    assert_true(query_cache_bytes(cache) <= 100000);
    query_cache_destroy(cache);
}

struct used {
    struct query_cache *cache;
    uint32_t series;
};

static void *use_it(void *user)
{
    const struct used *u = user;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t series = i * 7 % u->series;
        const struct decoded_entry *e = decoded_find(u->cache, 1, series);
        if (e && (e->values[e->count - 1] != 0 || e->t_ns[e->count - 1] != 0))
            abort();
        if (e)
            decoded_release(u->cache, e);
        else
            decoded_keep(u->cache, 1, series, zeros_t, zeros_v, 1 + i % 3 * 40);
        if (i % 1000 == 0)
            query_cache_shrink(u->cache, 1000);
    }
    return NULL;
}

static void use_in_threads(size_t bytes, uint32_t series)
{
    struct used u = {cache_of(bytes), series};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_it, &u), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(query_cache_bytes(u.cache) <= bytes);
    query_cache_shrink(u.cache, SIZE_MAX);
    assert_true(query_cache_bytes(u.cache) <= bytes / 32); // the table stays
    query_cache_destroy(u.cache);
}

static void several_threads(void **state)
{
    (void)state;
    use_in_threads(8000, 12);        // a chunk for each larger entry
    use_in_threads(16 * 3000, 200);  // some entries in each chunk
    use_in_threads(8 << 20, 100000); // all fit
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_points_are_not_decoded_again),
        cmocka_unit_test(answers_do_not_depend_on_the_cache),
        cmocka_unit_test(cached_points_count_against_the_account),
        cmocka_unit_test(prepared_memory_is_used_and_freed),
        cmocka_unit_test(small_entries_get_a_larger_table),
        cmocka_unit_test(the_oldest_goes_first),
        cmocka_unit_test(the_oldest_chunk_goes_first),
        cmocka_unit_test(equal_time_stamps_are_kept_once),
        cmocka_unit_test(both_lists_of_time_stamps_of_a_block_are_kept_once),
        cmocka_unit_test(several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
