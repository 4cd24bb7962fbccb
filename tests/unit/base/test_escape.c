// Escapes texts as words: for our own lines, and for a shell.
#include "base/escape.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const texts[] = {
    "",   "plain",      "two words",         "it's", "a\tb", "$HOME", "`id`", "\\",
    "\"", "line\nline", "é;|&<>*?[]{}()!#~", "-x",   "=",    "'"};

static void a_word_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf word = {0};
        struct arena arena = {0};
        escape_word(&word, str_of(texts[i]));
        assert_true(str_find_char(buf_str(&word), ' ') < 0);
        assert_true(str_eq(unescape_word(buf_str(&word), &arena), str_of(texts[i])));
        buf_free(&word);
        arena_free(&arena);
    }
}

// Checks the result with a real shell.
static void a_shell_takes_it_as_one_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf command = {0};
        char got[256];
        buf_add_str(&command, STR("printf '%s|' "));
        escape_for_shell(&command, str_of(texts[i]));
        FILE *shell = popen(buf_cstr(&command), "re");
        assert_non_null(shell);
        size_t size = fread(got, 1, sizeof got - 1, shell);
        got[size] = 0;
        assert_int_equal(pclose(shell), 0);
        assert_int_equal(size, strlen(texts[i]) + 1);
        assert_memory_equal(got, texts[i], size - 1);
        buf_free(&command);
    }
}

static void plain_words_stay_unchanged(void **state)
{
    (void)state;
    struct buf out = {0};
    escape_for_shell(&out, STR("/usr/bin/a-b_c.d,1:2=3"));
    assert_true(str_eq(buf_str(&out), STR("/usr/bin/a-b_c.d,1:2=3")));
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_comes_back),
        cmocka_unit_test(a_shell_takes_it_as_one_word),
        cmocka_unit_test(plain_words_stay_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
