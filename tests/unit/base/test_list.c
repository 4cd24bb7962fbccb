#include "base/list.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <string.h>

struct element {
    int number;
    struct list_link in_list;
};

enum { ELEMENTS = 12 };

static size_t numbers_of(struct list_link *head, int *out)
{
    size_t n = 0;
    LIST_EACH (link, head)
        out[n++] = LIST_OF(link, struct element, in_list)->number;
    return n;
}

static size_t place_of(const int *order, size_t count, int number)
{
    size_t i = 0;
    while (i < count && order[i] != number)
        i++;
    return i;
}

// Random steps, compared with an array that performs the same operations.
static void random_steps(void **state)
{
    (void)state;
    uint64_t random = test_seed(1);
    struct element elements[ELEMENTS];
    struct list_link head;
    int order[ELEMENTS], found[ELEMENTS];
    size_t count = 0;
    list_init(&head);
    for (int i = 0; i < ELEMENTS; i++) {
        elements[i].number = i;
        list_init(&elements[i].in_list);
    }
    for (unsigned round = 0; round < 20000 * test_rounds(); round++) {
        int number = (int)(test_random(&random) % ELEMENTS);
        struct list_link *link = &elements[number].in_list;
        size_t at = place_of(order, count, number);
        unsigned step = (unsigned)(test_random(&random) % 4);
        if (step == 3) {
            struct list_link *first = list_take_first(&head);
            assert_ptr_equal(first, count ? &elements[order[0]].in_list : NULL);
            if (count)
                memmove(order, order + 1, --count * sizeof *order);
        } else if (at < count || step == 0) { // in the list, or removed a second time
            list_remove(link);
            if (at < count)
                memmove(order + at, order + at + 1, (--count - at) * sizeof *order);
        } else if (step == 1) {
            list_prepend(&head, link);
            memmove(order + 1, order, count++ * sizeof *order);
            order[0] = number;
        } else {
            list_append(&head, link);
            order[count++] = number;
        }
        assert_int_equal(list_empty(&head), count == 0);
        assert_int_equal(numbers_of(&head, found), count);
        assert_memory_equal(found, order, count * sizeof *order);
    }
}

static void a_link_may_be_removed_during_a_visit(void **state)
{
    (void)state;
    struct element elements[ELEMENTS];
    struct list_link head;
    int left[ELEMENTS];
    list_init(&head);
    for (int i = 0; i < ELEMENTS; i++) {
        elements[i].number = i;
        list_append(&head, &elements[i].in_list);
    }
    LIST_EACH (link, &head)
        if (LIST_OF(link, struct element, in_list)->number % 3)
            list_remove(link);
    assert_int_equal(numbers_of(&head, left), ELEMENTS / 3);
    for (int i = 0; i < ELEMENTS / 3; i++)
        assert_int_equal(left[i], 3 * i);
}

// For 0 to ELEMENTS elements: this many are in the first list, the rest in the second.
static void moved_elements_follow_the_existing_ones(void **state)
{
    (void)state;
    for (int count = 0; count <= ELEMENTS; count++)
        for (int split = 0; split <= count; split++) {
            struct element elements[ELEMENTS];
            struct list_link from, to;
            int found[ELEMENTS];
            list_init(&from);
            list_init(&to);
            for (int i = 0; i < count; i++) {
                elements[i].number = i;
                list_append(i < split ? &to : &from, &elements[i].in_list);
            }
            list_take_all(&from, &to);
            assert_true(list_empty(&from));
            assert_int_equal(numbers_of(&to, found), count);
            for (int i = 0; i < count; i++) {
                assert_int_equal(found[i], i);
                list_remove(&elements[i].in_list); // the links back are right, too
            }
            assert_true(list_empty(&to));
        }
}

// ---- a loop that GCC 12 gets wrong if the links obey strict aliasing ----

struct page {
    struct list_link in_clock;
    size_t used, found;
    int number;
};

struct clock {
    size_t bytes;
    struct list_link pages;
};

static int evicted = -1;

__attribute__((noinline)) static void evict(struct clock *c, struct page *p)
{
    list_remove(&p->in_clock);
    evicted = p->number;
    c->bytes = 0;
}

static void turn(struct clock *c)
{
    for (;;) {
        struct page *oldest = LIST_OF(c->pages.next, struct page, in_clock);
        if (oldest->found < oldest->used / 2) {
            evict(c, oldest);
            return;
        }
        oldest->found = 0;
        list_remove(&oldest->in_clock);
        list_append(&c->pages, &oldest->in_clock);
    }
}

__attribute__((noinline)) static void make_room(struct clock *c)
{
    while (c->bytes > 100 && !list_empty(&c->pages))
        turn(c);
}

static void the_first_moves_to_the_end(void **state)
{
    (void)state;
    struct clock c = {.bytes = 101};
    struct page pages[3] = {
        {.number = 0, .used = 100, .found = 100}, {.number = 1, .used = 100}, {.number = 2}};
    list_init(&c.pages);
    for (int i = 0; i < 3; i++)
        list_append(&c.pages, &pages[i].in_clock);
    make_room(&c);
    assert_int_equal(evicted, 1);
    assert_ptr_equal(c.pages.next, &pages[2].in_clock);
    assert_ptr_equal(c.pages.previous, &pages[0].in_clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_steps),
                                       cmocka_unit_test(the_first_moves_to_the_end),
                                       cmocka_unit_test(a_link_may_be_removed_during_a_visit),
                                       cmocka_unit_test(moved_elements_follow_the_existing_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
