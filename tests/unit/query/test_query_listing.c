// Walks over series with tags find what a walk over all series finds, also where the store adds a
// label; and with a rare tag they examine only its series.
#include "query/listing.h"
#include "unit/query/ask.h"

#include <stdlib.h>

enum { STORES = 3, SERIES = 400, ROUNDS = 2000, MANY = 20 * QUERY_LISTING_LOOKS };

static uint64_t seed = 88172645463325252u;

static unsigned draw(unsigned below)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (unsigned)(seed % below);
}

static const char *const KEYS[] = {"a", "host", "z"};

static struct world *make_world(void)
{
    struct world *w = world_new();
    for (unsigned store = 0; store < STORES; store++)
        for (unsigned i = 0; i < SERIES; i++) {
            char metric[8], tags[64];
            snprintf(metric, sizeof metric, "m%u", draw(4));
            int size = snprintf(tags, sizeof tags, "id=%u", i);
            for (size_t k = 0; k < 3; k++)
                if (draw(3))
                    size += snprintf(tags + size, sizeof tags - (size_t)size, ",%s=v%u", KEYS[k],
                                     draw(k == 0 ? 40 : 4));
            world_add(w, store, world_series(w, store, metric, tags), T * S, i);
        }
    return w;
}

// Adds up what the walk finds, so that the order does not matter.
struct sum {
    size_t count;
    uint64_t hash;
};

static void add(struct sum *sum, struct str metric, const struct store_label *labels, size_t count,
                size_t store)
{
    uint64_t h = store + 1;
    for (size_t i = 0; i <= 2 * count; i++) {
        struct str word = i == 0 ? metric : i % 2 ? labels[i / 2].key : labels[i / 2 - 1].value;
        for (size_t k = 0; k < word.size; k++)
            h = (h ^ (uint8_t)word.data[k]) * 0x100000001b3u;
        h = (h ^ 0xff) * 0x100000001b3u;
    }
    sum->count++;
    sum->hash += h;
}

static struct sum walk(struct store_snapshot *const *stores, size_t count,
                       const struct store_label *added, const struct query_series_filter *filter,
                       size_t *pauses)
{
    struct query_listing l = {
        .stores = stores, .store_labels = added, .count = count, .filter = filter};
    struct query_listed one;
    struct sum sum = {0};
    for (int more; (more = query_listing_next(&l, &one)) != 0;)
        if (more > 0)
            add(&sum, one.metric->name, one.labels, one.label_count, l.store);
        else
            ++*pauses;
    return sum;
}

static struct sum examine_all(struct store_snapshot *const *stores, size_t count,
                              const struct store_label *added,
                              const struct query_series_filter *filter)
{
    struct sum sum = {0};
    for (size_t i = 0; i < count; i++)
        for (uint32_t id = 0; id < store_series_count(stores[i]); id++) {
            struct store_series_info s;
            struct store_label room[QUERY_LABELS_MAX];
            assert_true(store_series_get(stores[i], id, &s));
            struct str metric = store_metric_get(stores[i], s.metric)->name;
            if (query_labels_lack(&s, added ? &added[i] : NULL))
                query_labels_add(&s, &added[i], room);
            if ((!filter->metric.size || str_eq(metric, filter->metric)) &&
                query_labels_carry(&s, filter->tags, filter->tag_count))
                add(&sum, metric, s.labels, s.label_count, i);
        }
    return sum;
}

static void tags_find_what_a_walk_over_all_finds(void **state)
{
    (void)state;
    struct world *w = make_world();
    size_t count, pauses = 0, found = 0;
    struct store_snapshot *const *stores = world_stores(w, &count);
    const struct store_label added[STORES] = {
        {STR("host"), STR("v1")}, {STR("host"), STR("other")}, {{0}, {0}}};
    for (int round = 0; round < ROUNDS; round++) {
        char texts[3][16];
        struct store_label tags[3];
        struct query_series_filter filter = {.tags = tags, .tag_count = draw(4)};
        if (draw(2))
            filter.metric = str_of(((const char *const[]){"m0", "m1", "m2", "none"})[draw(4)]);
        for (size_t i = 0; i < filter.tag_count; i++) {
            snprintf(texts[i], sizeof texts[i], draw(6) ? "v%u" : "*", draw(5));
            tags[i] = (struct store_label){str_of(KEYS[draw(3)]), str_of(texts[i])};
            if (draw(8) == 0) {
                snprintf(texts[i], sizeof texts[i], "%u", draw(SERIES));
                tags[i].key = STR("id");
            }
        }
        const struct store_label *more = draw(2) ? added : NULL;
        struct sum got = walk(stores, count, more, &filter, &pauses),
                   want = examine_all(stores, count, more, &filter);
        assert_int_equal(got.count, want.count);
        assert_true(got.hash == want.hash);
        found += got.count > 0 && filter.tag_count > 0;
    }
    assert_true(found > ROUNDS / 8);
    world_free(w);
}

static void a_rare_tag_needs_no_walk_over_all_series(void **state)
{
    (void)state;
    struct world *w = world_new();
    for (unsigned i = 0; i < MANY; i++) {
        char tags[32];
        snprintf(tags, sizeof tags, "host=n1,id=%u", i);
        world_add(w, 0, world_series(w, 0, i % 2 ? "m" : "k", tags), T * S, 1);
    }
    size_t count, pauses = 0;
    struct store_snapshot *const *stores = world_stores(w, &count);
    const struct store_label tags[] = {{STR("host"), STR("n1")}, {STR("id"), STR("777")}};
    for (int named = 0; named < 2; named++) {
        struct query_series_filter filter = {
            .metric = named ? STR("m") : STR(""), .tags = tags, .tag_count = 2};
        assert_int_equal(walk(stores, count, NULL, &filter, &pauses).count, 1);
        assert_int_equal(pauses, 0);
        filter.tags = &(struct store_label){STR("id"), STR("none")};
        filter.tag_count = 1;
        assert_int_equal(walk(stores, count, NULL, &filter, &pauses).count, 0);
        assert_int_equal(pauses, 0);
    }
    // A tag that most series have does not help.
    struct query_series_filter filter = {.tags = tags, .tag_count = 1};
    assert_int_equal(walk(stores, count, NULL, &filter, &pauses).count, MANY);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_find_what_a_walk_over_all_finds),
        cmocka_unit_test(a_rare_tag_needs_no_walk_over_all_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
