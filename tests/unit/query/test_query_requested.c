// What a query requests from the disk before it reads: its range, and how long its buckets are.
#include "unit/query/ask.h"

enum { SECONDS = 1000 };

static void the_range_and_the_buckets_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *m;
        int64_t from_ns, to_ns, bucket_ns;
    } facts[] = {
        {"sum:m", T * S, (T + 100) * S, 0},
        {"sum:10s-avg:m", T * S, (T + 110) * S - 1, 10 * S}, // the last bucket is whole
        {"none:1m-max:m", (T - T % 60) * S, (T + 100 - (T + 100) % 60 + 60) * S - 1, 60 * S},
        {"max:0all-max:m", T * S, (T + 100) * S - 1, INT64_MAX},
    };
    struct world *w = world_new();
    uint32_t id = world_series(w, 0, "m", "host=a");
    for (int k = 0; k < SECONDS; k++)
        world_add(w, 0, id, (T + k) * S, k);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct asked a = ask(w, facts[i].m, T, T + 100);
        struct store_request got = world_request();
        assert_true(got.bytes_left > 0);
        if (got.from_ns > facts[i].from_ns || got.to_ns < facts[i].to_ns ||
            got.bucket_ns != facts[i].bucket_ns)
            fail_msg("%s requests [%lld, %lld], buckets of %lld", facts[i].m,
                     (long long)got.from_ns, (long long)got.to_ns, (long long)got.bucket_ns);
        asked_free(&a);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_range_and_the_buckets_are_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
