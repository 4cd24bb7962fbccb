#include "base/behind.h"
#include "unit/test.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic int sum;
static int pipe_ends[2]; // work that waits reads from it

static int add(void *number)
{
    sum += *(int *)number;
    return *(int *)number % 2 ? -*(int *)number : 0;
}

static int add_when_told(void *number)
{
    char byte;
    return read(pipe_ends[0], &byte, 1) == 1 ? add(number) : -1;
}

static void one_after_another(void **state)
{
    (void)state;
    struct behind b = BEHIND_IDLE;
    sum = 0;
    assert_int_equal(behind_wait(&b), 0); // no work was begun
    for (int i = 0; i < 1000; i++) {
        behind_begin(&b, add, &i);
        assert_int_equal(behind_wait(&b), i % 2 ? -i : 0);
        assert_int_equal(behind_wait(&b), 0); // a result is given once
    }
    assert_int_equal(sum, 999 * 1000 / 2);
    int last = 7;
    behind_begin(&b, add, &last);
    assert_int_equal(behind_end(&b), -7);
    assert_int_equal(behind_end(&b), 0);
    behind_begin(&b, add, &last); // it starts again
    assert_int_equal(behind_end(&b), -7);
}

// The caller goes on while the work waits for it.
static void beside_the_caller(void **state)
{
    (void)state;
    struct behind b = BEHIND_IDLE;
    int number = 5;
    sum = 0;
    assert_int_equal(pipe(pipe_ends), 0);
    for (int i = 1; i <= 100; i++) {
        // With one processor, the caller would do the work itself, and wait for ever.
        if (!b.started && i == 1) {
            behind_begin(&b, add, &number);
            behind_wait(&b);
            sum = 0;
            if (!b.started)
                skip();
        }
        behind_begin(&b, add_when_told, &number);
        assert_int_equal(sum, (i - 1) * number);
        assert_int_equal(write(pipe_ends[1], "", 1), 1);
        assert_int_equal(behind_wait(&b), -number);
    }
    behind_end(&b);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_another),
        cmocka_unit_test(beside_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
