// Spans and annotations over many blocks: results of queries, compared with a plain list of the
// appended events, and the number of blocks read.
#include "fixture.h"

#include "store/reader.h"

#include <string.h>

enum { EVENTS = 6000, TIMES = 100000, MOST_OPEN = 40 };

static struct store_event appended[2 * EVENTS];
static bool replaced[2 * EVENTS];
static size_t count, last_of[EVENTS + 1]; // 1 + index of the last event that has this id
static uint32_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(random_state >> 8) * below >> 24);
}

static void append(struct store *s, struct store_event e)
{
    assert_int_equal(store_append_event(s, &e), 0);
    replaced[count] = false;
    appended[count++] = e;
    if (e.kind != STORE_SPAN)
        return;
    if (last_of[e.id])
        replaced[last_of[e.id] - 1] = true;
    last_of[e.id] = count;
}

struct check {
    uint8_t seen[2 * EVENTS];
    size_t given;
    int64_t last_start;
};

static bool see(const struct store_event *e, void *user)
{
    struct check *c = user;
    uint64_t number;
    assert_true(str_to_u64(e->text, &number) && number < count);
    const struct store_event *a = &appended[number];
    assert_true(e->start_ns == a->start_ns && e->end_ns == a->end_ns && e->id == a->id &&
                e->kind == a->kind);
    assert_true(e->start_ns >= c->last_start);
    c->last_start = e->start_ns;
    c->seen[number]++;
    c->given++;
    return true;
}

// Of spans with equal ids, the last one counts.
static bool matches(size_t i, const struct store_event_selection *w)
{
    const struct store_event *e = &appended[i];
    return !replaced[i] && e->start_ns <= w->to_ns && e->end_ns >= w->from_ns &&
           (!w->kinds || w->kinds >> appended[i].kind & 1) &&
           (!w->name.size || str_eq(w->name, appended[i].text));
}

// With a limit, the earliest events are returned: no omitted one begins before one of them.
static void compare_most(struct store_reader *r, const struct store_event_selection *w)
{
    static struct check c;
    c = (struct check){.last_start = INT64_MIN};
    struct store_snapshot *s = store_snapshot_open(r);
    assert_int_equal(store_events_find(s, w, see, &c), 0);
    store_snapshot_close(s);
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        all += matches(i, w);
        assert_true(c.seen[i] <= matches(i, w));
        if (matches(i, w) && !c.seen[i])
            assert_true(appended[i].start_ns >= c.last_start);
    }
    assert_int_equal(c.given, all < w->most ? all : w->most);
}

static void compare_kinds(struct store_reader *r, unsigned kinds, int64_t from, int64_t to)
{
    static struct check c;
    c = (struct check){.last_start = INT64_MIN};
    struct store_event_selection wanted = {.from_ns = from, .to_ns = to, .kinds = kinds};
    struct store_snapshot *s = store_snapshot_open(r);
    assert_int_equal(store_events_find(s, &wanted, see, &c), 0);
    store_snapshot_close(s);
    for (size_t i = 0; i < count; i++)
        if (c.seen[i] != matches(i, &wanted))
            fail_msg("event %zu (%lld to %lld, id %llu) is given %d times in %lld to %lld", i,
                     (long long)appended[i].start_ns, (long long)appended[i].end_ns,
                     (unsigned long long)appended[i].id, c.seen[i], (long long)from, (long long)to);
}

static void compare(struct store_reader *r, int64_t from, int64_t to)
{
    for (unsigned kinds = 0; kinds < 4; kinds++)
        compare_kinds(r, kinds, from, to);
    struct store_event_selection wanted = {.from_ns = from, .to_ns = to, .kinds = next_random(4)};
    wanted.most = 1 + next_random(next_random(2) ? 10 : 2 * EVENTS);
    if (count && next_random(4) == 0)
        wanted.name = appended[next_random((uint32_t)count)].text;
    compare_most(r, &wanted);
}

static char texts[2 * EVENTS][12];

static struct str next_text(void)
{
    snprintf(texts[count], sizeof texts[count], "%zu", count);
    return str_of(texts[count]);
}

// Time advances; some spans end much later than they begin, some never, some are repeated, some
// with another time or in the wrong order.
static void random_events(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        random_state = seed;
        count = 0;
        memset(last_of, 0, sizeof last_of);
        struct store *s = open_with(NULL);
        struct store_reader *kept = open_reader();
        struct store_event open[MOST_OPEN];
        size_t open_count = 0;
        for (int i = 0; i < EVENTS; i++) {
            int64_t now = (int64_t)i * TIMES / EVENTS;
            uint32_t what = next_random(10);
            struct store_event e = {
                .kind = STORE_SPAN, .start_ns = now, .end_ns = INT64_MAX, .text = next_text()};
            if (what < 4 && open_count < MOST_OPEN) {
                e.id = (uint64_t)i + 1;
                open[open_count++] = e;
            } else if (what < 8 && open_count) {
                size_t which = next_random((uint32_t)open_count);
                struct str text = e.text;
                e = open[which];
                e.text = text;
                e.end_ns = now;
                if (next_random(20) == 0)
                    e.start_ns -= 5;
                if (next_random(20)) // otherwise it ends once more, later
                    open[which] = open[--open_count];
            } else {
                e.kind = STORE_ANNOTATION;
                e.end_ns = e.start_ns;
            }
            append(s, e);
            if (next_random(200) == 0)
                assert_int_equal(store_seal(s), 0);
            if (next_random(400) == 0) {
                int64_t from = next_random(TIMES);
                compare(kept, from, from + next_random(TIMES / 20));
            }
        }
        for (int round = 0; round < 3; round++) {
            struct store_reader *fresh = open_reader();
            for (int i = 0; i < 5; i++) {
                int64_t from = (int64_t)next_random(TIMES) - 10;
                int64_t to = from + next_random(i % 2 ? 50 : TIMES);
                compare(kept, from, to);
                compare(fresh, from, to);
            }
            compare(fresh, INT64_MIN, INT64_MAX);
            store_reader_close(fresh);
            if (round == 0)
                assert_int_equal(store_seal(s), 0);
            if (round == 1)
                store_reader_close(kept);
            if (round == 1)
                close_store(s);
            if (round == 1)
                kept = open_reader();
        }
        store_reader_close(kept);
        unlink(fixture_path);
    }
}

static bool count_one(const struct store_event *e, void *user)
{
    (void)e;
    ++*(int *)user;
    return true;
}

static uint64_t blocks_read_of(struct store_reader *r, unsigned kinds, size_t most, int64_t from,
                               int64_t to, int expected)
{
    uint64_t before = r->events.blocks_read;
    struct store_snapshot *s = store_snapshot_open(r);
    int n = 0;
    struct store_event_selection wanted = {
        .from_ns = from, .to_ns = to, .kinds = kinds, .most = most};
    assert_int_equal(store_events_find(s, &wanted, count_one, &n), 0);
    store_snapshot_close(s);
    assert_int_equal(n, expected);
    return r->events.blocks_read - before;
}

static uint64_t blocks_read(struct store_reader *r, int64_t from, int64_t to, int expected)
{
    return blocks_read_of(r, 0, 0, from, to, expected);
}

// A block per step, each with a span of its own; one more span begins in the first block and ends
// in the last.
static void only_blocks_that_touch_the_range_are_read(void **state)
{
    (void)state;
    enum { BLOCKS = 50, STEP = 1000 };
    struct store *s = open_with(NULL);
    struct store_event job = {
        .kind = STORE_SPAN, .start_ns = 0, .end_ns = INT64_MAX, .id = 1000, .text = STR("job")};
    for (int i = 0; i < BLOCKS; i++) {
        struct store_event e = {.kind = STORE_SPAN, .id = (uint64_t)i + 1, .text = STR("step")};
        e.start_ns = i * STEP;
        e.end_ns = e.start_ns + STEP / 2;
        if (i == 0)
            assert_int_equal(store_append_event(s, &job), 0);
        assert_int_equal(store_append_event(s, &e), 0);
        assert_int_equal(store_seal(s), 0);
    }
    struct store_reader *r = open_reader();
    assert_int_equal(blocks_read(r, 20 * STEP, 20 * STEP, 2), BLOCKS); // each once
    // the step's block, and the first one: the job has not ended
    assert_int_equal(blocks_read(r, 20 * STEP, 20 * STEP, 2), 2);
    assert_int_equal(blocks_read(r, 20 * STEP, 22 * STEP, 4), 4);
    assert_int_equal(blocks_read(r, 0, BLOCKS * STEP, BLOCKS + 1), BLOCKS);
    // Once it has ended, the first block matters no longer for later times; the block with its end
    // does.
    job.end_ns = BLOCKS * STEP;
    assert_int_equal(store_append_event(s, &job), 0);
    assert_int_equal(store_seal(s), 0);
    assert_int_equal(blocks_read(r, 20 * STEP, 20 * STEP, 2), 3);
    assert_int_equal(blocks_read(r, 20 * STEP, 20 * STEP, 2), 2);
    assert_int_equal(blocks_read(r, 0, 0, 2), 2);
    // Annotations are in few blocks, and only these are read for them.
    assert_int_equal(blocks_read_of(r, 1u << STORE_ANNOTATION, 0, 0, INT64_MAX, 0), 0);
    struct store_event note = {
        .kind = STORE_ANNOTATION, .start_ns = STEP, .end_ns = STEP, .text = STR("note")};
    assert_int_equal(store_append_event(s, &note), 0);
    assert_int_equal(store_seal(s), 0);
    assert_int_equal(blocks_read_of(r, 1u << STORE_ANNOTATION, 0, 0, INT64_MAX, 1), 1);
    assert_int_equal(blocks_read_of(r, 1u << STORE_ANNOTATION, 0, 0, INT64_MAX, 1), 1);
    assert_int_equal(blocks_read_of(r, 1u << STORE_SPAN, 0, 0, INT64_MAX, BLOCKS + 1), BLOCKS + 1);
    assert_int_equal(blocks_read(r, (BLOCKS + 1) * STEP, INT64_MAX, 0), 0);
    // For the earliest spans, later blocks are not read.
    assert_int_equal(blocks_read_of(r, 1u << STORE_SPAN, 5, 0, INT64_MAX, 5), 6);
    store_reader_close(r);
    close_store(s);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {CASE(random_events),
                                       CASE(only_blocks_that_touch_the_range_are_read)};
    return cmocka_run_group_tests_name("store events", tests, NULL, NULL);
}
