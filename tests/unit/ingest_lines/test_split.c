// A stream gives the same lines, however it is divided into pieces; a line that is too long is lost
// alone.
#include "ingest/lines_split.h"
#include "unit/test.h"

enum { LIMIT = 8 };

static void note(void *user, struct str line, bool too_long)
{
    struct buf *out = user;
    if (too_long)
        buf_add_str(out, STR("<long>"));
    else
        buf_printf(out, "[%.*s]", STR_ARG(line));
}

static void expect(struct str stream, const char *lines, uint64_t number)
{
    // Divides the stream into pieces of `step` bytes, for every possible `step`.
    for (size_t step = 1; step <= stream.size; step++) {
        struct lines_split s = {0};
        struct buf out = {0};
        for (size_t at = 0; at < stream.size; at += step)
            lines_split_feed(&s, str_slice(stream, at, at + step), LIMIT, note, &out);
        lines_split_end(&s, LIMIT, note, &out);
        assert_string_equal(buf_cstr(&out), lines);
        assert_int_equal(s.number, number);
        assert_true(s.partial.capacity <= 64);
        lines_split_free(&s);
        buf_free(&out);
    }
}

static void pieces(void **state)
{
    (void)state;
    expect(STR("a\nbc\n\ndef"), "[a][bc][][def]", 4);
    expect(STR("a\r\nb\r\n"), "[a][b]", 2);
    expect(STR("12345678\n12345678\r\nx\n"), "[12345678][12345678][x]", 3);
    expect(STR("123456789\nx\n"), "<long>[x]", 2);
    expect(STR("a\n1234567890123456789012345678901234567890\nx"), "[a]<long>[x]", 3);
    expect(STR("1234567890123456789012345678901234567890"), "<long>", 1);
    expect(STR("\n\n"), "[][]", 2);
    expect(STR("a\0b\n\0"), "[a][]", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces)};
    return cmocka_run_group_tests_name("ingest_lines/split", tests, NULL, NULL);
}
