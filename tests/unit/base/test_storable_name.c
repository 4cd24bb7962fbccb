// Any text has a name that the store accepts; different texts have different names.
#include "base/storable_name.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 255 };

static void expect(const char *text, const char *name)
{
    struct buf out = {0};
    storable_name_add(&out, str_of(text), NAME_MAX_BYTES);
    assert_string_equal(buf_cstr(&out), name);
    assert_true(storable_name_is(buf_str(&out), NAME_MAX_BYTES));
    assert_int_equal(storable_name_is(str_of(text), NAME_MAX_BYTES), strcmp(text, name) == 0);
    buf_free(&out);
}

static void table(void **state)
{
    (void)state;
    expect("loss", "loss");
    expect("a.b/c:d-e_F9", "a.b/c:d-e_F9");
    expect("größe", "größe");
    expect("loss%", "loss％");
    expect("a b", "a　b");
    expect("lr(0)", "lr（0）");
    expect("x{y}=\"z\"", "x｛y｝＝＂z＂");
    expect("a~!", "a～！");
    expect("a\tb\177", "a␉b␡");
    expect("\xff%", "\xff％");
    expect("", "_");
}

static void long_names_end_in_a_hash(void **state)
{
    (void)state;
    char text[400], first[NAME_MAX_BYTES + 1];
    struct buf out = {0};
    memset(text, 'm', sizeof text);
    storable_name_add(&out, (struct str){text, NAME_MAX_BYTES}, NAME_MAX_BYTES);
    assert_memory_equal(out.data, text, NAME_MAX_BYTES);
    out.size = 0;
    storable_name_add(&out, (struct str){text, NAME_MAX_BYTES + 1}, NAME_MAX_BYTES);
    assert_int_equal(out.size, NAME_MAX_BYTES);
    assert_int_equal(out.data[NAME_MAX_BYTES - 17], ':');
    memcpy(first, out.data, NAME_MAX_BYTES);
    out.size = 0;
    text[sizeof text - 1] = 'n';
    storable_name_add(&out, (struct str){text, sizeof text}, NAME_MAX_BYTES);
    assert_memory_not_equal(out.data, first, NAME_MAX_BYTES);
    buf_free(&out);
}

// Decodes a name by the table in the header.
static size_t read_back(struct str name, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < name.size;) {
        const unsigned char *s = (const unsigned char *)name.data + i;
        unsigned code = s[0];
        size_t n = s[0] < 0x80 ? 1 : 3;
        if (n == 3) {
            code = (unsigned)(s[0] & 0xf) << 12 | (unsigned)(s[1] & 0x3f) << 6 | (s[2] & 0x3fu);
            code = code == 0x3000   ? ' '
                   : code == 0x2421 ? 127
                   : code >= 0xff01 ? code - 0xff01 + '!'
                                    : code - 0x2400;
        }
        out[size++] = (char)code;
        i += n;
    }
    return size;
}

static void random_names_come_back(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261122);
    for (unsigned round = 0; round < 20000 * test_rounds(); round++) {
        char text[80], again[80];
        size_t size = 1 + test_random(&seed) % sizeof text;
        for (size_t i = 0; i < size; i++)
            text[i] = (char)(test_random(&seed) % 128);
        struct buf out = {0};
        storable_name_add(&out, (struct str){text, size}, NAME_MAX_BYTES);
        assert_true(storable_name_is(buf_str(&out), NAME_MAX_BYTES));
        assert_int_equal(read_back(buf_str(&out), again), size);
        assert_memory_equal(again, text, size);
        buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(long_names_end_in_a_hash),
        cmocka_unit_test(random_names_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
