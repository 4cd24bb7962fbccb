#include "cli/columns.h"
#include "unit/test.h"

static void columns_are_aligned(void **state)
{
    (void)state;
    static const char *const titles[] = {"name", "points", "what"};
    struct columns table = {0};
    struct buf out = {0};
    columns_titles(&table, titles, 3);
    columns_cell(&table, "%s", "größe"); // 5 characters, 7 bytes
    columns_cell(&table, "%d", 7);
    columns_cell(&table, "%s", "x");
    columns_cell(&table, "%s", "a");
    columns_cell(&table, "%s", "");
    columns_cell(&table, "%s", "a longer one");
    columns_write(&table, &out);
    assert_string_equal(buf_cstr(&out), "name   points  what\n"
                                        "größe       7  x\n"
                                        "a              a longer one\n");
    columns_free(&table);
    buf_free(&out);
}

static void many_cells(void **state)
{
    (void)state;
    static const char *const titles[] = {"n"};
    struct columns table = {0};
    struct buf out = {0};
    columns_titles(&table, titles, 1);
    for (int i = 0; i < 1000; i++)
        columns_cell(&table, "%d", i);
    columns_write(&table, &out);
    assert_false(out.failed);
    assert_int_equal(out.size, 1001 * 4); // right-aligned to three characters
    columns_free(&table);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_aligned),
                                       cmocka_unit_test(many_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
