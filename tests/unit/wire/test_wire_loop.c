// Work in turns: which item the loop steps when.
#include "wire/loop.h"

#include "base/clock.h"
#include "unit/test.h"
#include "unit/wire/net.h"

#include <stdatomic.h>

enum { ITEMS = 3, STEPS = 4000, ALL = ITEMS * STEPS };

// Written by the loop's thread, and read after its end.
static struct {
    atomic_size_t count; // made steps
    int item[ALL];
    int64_t at_ns[ALL];
    int64_t begin_ns;
    bool cancelled_one_ran;
} steps;

static struct item {
    struct wire_work work; // the first member: the work is the item
    int number, left;
} items[ITEMS], cancelled;

static bool step(struct wire_work *work)
{
    struct item *i = (struct item *)work;
    steps.item[steps.count] = i->number;
    steps.at_ns[steps.count++] = clock_monotonic_ns();
    wire_loop_work_cancel(&cancelled.work);
    return --i->left > 0;
}

static bool never(struct wire_work *work)
{
    (void)work;
    steps.cancelled_one_ran = true;
    return false;
}

static void queue_all(void *user)
{
    steps.begin_ns = clock_monotonic_ns();
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct item){.work.step = step, .number = i, .left = STEPS};
        wire_loop_work(user, &items[i].work);
    }
    cancelled.work.step = never;
    wire_loop_work(user, &cancelled.work);
}

static int run_all(void **state)
{
    (void)state;
    struct wire_loop *l = net_loop();
    wire_loop_call(l, queue_all, l);
    NET_AWAIT(steps.count == ALL);
    wire_loop_stop(l);
    return 0;
}

// Small steps of one item follow each other, so that its memory stays in the processor's cache. The
// loop reads the clock after each step, so each of its turns begins after the step before it.
static void an_item_keeps_its_turn(void **state)
{
    (void)state;
    size_t turns = 0;
    int left[ITEMS] = {STEPS, STEPS, STEPS};
    int64_t before_ns = steps.begin_ns; // the turn began after this time,
    size_t first = 0;                   // and this was its first step
    for (size_t i = 0; i < ALL; i++) {
        left[steps.item[i]]--;
        bool others = false;
        for (int k = 0; k < ITEMS; k++)
            others |= k != steps.item[i] && left[k];
        if (i + 1 == ALL || !others)
            break;
        bool changes = steps.item[i + 1] != steps.item[i];
        if (steps.at_ns[i] - steps.at_ns[first] >= WIRE_LOOP_TURN_NS)
            assert_true(changes);
        if (!changes)
            continue;
        if (left[steps.item[i]])
            assert_true(steps.at_ns[i + 1] - before_ns >= WIRE_LOOP_TURN_NS);
        before_ns = steps.at_ns[i];
        first = i + 1;
        turns++;
    }
    assert_true(turns >= ITEMS - 1);
}

static void items_take_turns(void **state)
{
    (void)state;
    int next = 0;
    int left[ITEMS] = {STEPS, STEPS, STEPS};
    for (size_t i = 0; i < ALL; i++) {
        int now = steps.item[i];
        if (i && now == steps.item[i - 1]) {
            left[now]--;
            continue;
        }
        while (!left[next])
            next = (next + 1) % ITEMS;
        assert_int_equal(now, next);
        left[now]--;
        next = (next + 1) % ITEMS;
    }
}

static void cancelled_work_does_not_run(void **state)
{
    (void)state;
    assert_false(steps.cancelled_one_ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_keeps_its_turn),
        cmocka_unit_test(items_take_turns),
        cmocka_unit_test(cancelled_work_does_not_run),
    };
    return cmocka_run_group_tests(tests, run_all, NULL);
}
