// Text of other programs cannot control a terminal, and printable text stays unchanged.
#include "base/error.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <errno.h>

#include <stdio.h>
#include <stdlib.h>

static void expect(struct str text, const char *printed)
{
    struct buf out = {0};
    char cut[256];
    printable_add(&out, text);
    assert_string_equal(buf_cstr(&out), printed);
    // A second pass changes nothing.
    struct buf again = {0};
    printable_add(&again, buf_str(&out));
    assert_string_equal(buf_cstr(&again), printed);
    // In place, after existing text; and into an array.
    out.size = 0;
    buf_add_str(&out, STR("\033[1m"));
    buf_add_str(&out, text);
    printable_since(&out, 4);
    assert_memory_equal(buf_cstr(&out), "\033[1m", 4);
    assert_string_equal(buf_cstr(&out) + 4, printed);
    assert_int_equal(printable_copy(cut, sizeof cut, text), strlen(printed));
    assert_string_equal(cut, printed);
    buf_free(&out);
    buf_free(&again);
}

static void plain(void **state)
{
    (void)state;
    expect(STR(""), "");
    expect(STR("a b~\\x1b {}"), "a b~\\x1b {}");
    expect(STR("größe 温度 🙂 é"), "größe 温度 🙂 é");
}

static void escapes(void **state)
{
    (void)state;
    expect(STR("\033]0;title\007"), "\\x1b]0;title\\x07");
    expect(STR("a\nb\rc\td\0e\177"), "a\\nb\\rc\\td\\x00e\\x7f");
    expect(STR("\xc2\x9b"
               "31m"),
           "\\xc2\\x9b31m"); // CSI as one character
    expect(STR("\xe2\x80\xae"
               "gpj.exe"),
           "\\xe2\\x80\\xaegpj.exe"); // right to left
    expect(STR("\xe2\x81\xa6x\xe2\x80\xa8y\xe2\x80\x8f"),
           "\\xe2\\x81\\xa6x\\xe2\\x80\\xa8y\\xe2\\x80\\x8f");
    expect(STR("\xff\xc3\xe2\x82"), "\\xff\\xc3\\xe2\\x82"); // invalid UTF-8
    expect(STR("\xc0\x9b\xed\xa0\x80"), "\\xc0\\x9b\\xed\\xa0\\x80");
}

static void cut(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(printable_copy(out, sizeof out, STR("abc\033def")), 7);
    assert_string_equal(out, "abc\\x1b");
    assert_int_equal(printable_copy(out, sizeof out, STR("abcdéfgh")), 7);
    // not cut within a character
    assert_int_equal(printable_copy(out, sizeof out, STR("abcdefé")), 6);
    assert_int_equal(printable_copy(out, 1, STR("a")), 0);
    assert_int_equal(printable_copy(NULL, 0, STR("a")), 0);
}

// After escaping, random bytes contain nothing that a terminal interprets.
static void random_bytes(void **state)
{
    (void)state;
    uint64_t seed = test_seed(1);
    unsigned x = (unsigned)seed;
    size_t turns = (size_t)20000 * test_rounds();
    for (size_t turn = 0; turn < turns; turn++) {
        char bytes[24];
        struct buf out = {0};
        size_t size = (size_t)(rand_r(&x) % (int)sizeof bytes);
        for (size_t i = 0; i < size; i++) // often control characters and parts of UTF-8
            bytes[i] = (char)(rand_r(&x) % 3 ? rand_r(&x) % 256
                                             : "\033\xc2\x9b\xe2\x80\xae\n\r"[rand_r(&x) % 8]);
        printable_add(&out, (struct str){bytes, size});
        struct str text = buf_str(&out);
        for (size_t i = 0; i < text.size; i++) {
            unsigned char c = (unsigned char)text.data[i];
            bool c1 = c == 0xc2 && i + 1 < text.size && (unsigned char)text.data[i + 1] < 0xa0;
            if (c < 0x20 || c == 0x7f || c1)
                fail_msg("seed %llu, turn %zu: byte %zu of the output is %02x",
                         (unsigned long long)seed, turn, i, c);
        }
        buf_free(&out);
    }
}

static void errors_and_json(void **state)
{
    (void)state;
    struct error e;
    error_set(&e, -EINVAL, "no metric '%s'", "a\033[2Jb\n");
    assert_string_equal(e.text, "no metric 'a\\x1b[2Jb\\n'");
    error_prefix(&e, "file %s", "\r");
    assert_string_equal(e.text, "file \\r: no metric 'a\\x1b[2Jb\\n'");
    struct buf out = {0};
    struct json_writer w = json_to(&out);
    json_put_string(&w, STR("\xc2\x9b\177é\033"));
    assert_string_equal(buf_cstr(&out), "\"\\u009b\\u007fé\\u001b\"");
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),        cmocka_unit_test(escapes),         cmocka_unit_test(cut),
        cmocka_unit_test(random_bytes), cmocka_unit_test(errors_and_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
