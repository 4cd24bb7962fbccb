// Placeholders for nodes in a command's words: replaced exactly where they are allowed, and nowhere
// else.
#include "launch/substitute.h"

#include "unit/test.h"

static const char *const values[SUBSTITUTE_COUNT] = {
    [SUBSTITUTE_NODELIST] = "n1,n2",
    [SUBSTITUTE_HOSTS] = "n1 n2",
    [SUBSTITUTE_HOSTFILE] = "/run/hostfile",
    [SUBSTITUTE_NNODES] = "2",
};

static void expect(const char *word, const char *becomes)
{
    char *words[] = {(char *)(uintptr_t)word, NULL};
    char **out = substitute(words, values);
    assert_non_null(out);
    assert_string_equal(out[0], becomes);
    assert_null(out[1]);
    // substitute_needed is true for words that change.
    assert_int_equal(substitute_needed(words), strcmp(word, becomes) != 0);
    substitute_free(out);
}

static void test_whole_words(void **state)
{
    (void)state;
    expect("{nodelist}", "n1,n2");
    expect("{hosts}", "n1 n2");
    expect("{hostfile}", "/run/hostfile");
    expect("{nnodes}", "2");
}

static void test_values_of_options(void **state)
{
    (void)state;
    expect("--hostfile={hostfile}", "--hostfile=/run/hostfile");
    expect("-n={nnodes}", "-n=2");
    expect("-n{nnodes}", "-n2");
    expect("-n{nnodes}{nnodes}", "-n{nnodes}{nnodes}");
    expect("--{nnodes}", "--{nnodes}");
    expect("--x=y={nnodes}", "--x=y={nnodes}");
    expect("name={nnodes}", "name={nnodes}");
}

static void test_code_is_left_alone(void **state)
{
    (void)state;
    expect("print(f\"{hosts}\")", "print(f\"{hosts}\")");
    expect("x{nnodes}y", "x{nnodes}y");
    expect("{hosts} ", "{hosts} ");
    expect("{nnodes", "{nnodes");
    expect("${hosts}", "${hosts}");
    expect("{other}", "{other}");
    expect("", "");
}

static void test_asked_for(void **state)
{
    (void)state;
    expect("for h in {sonde:hosts}; do ssh $h; done", "for h in n1 n2; do ssh $h; done");
    expect("{sonde:nodelist}|{sonde:nnodes}|{nnodes}", "n1,n2|2|{nnodes}");
    expect("{sonde:other}", "{sonde:other}");
    expect("{sonde:hosts", "{sonde:hosts");
}

static void test_escape(void **state)
{
    (void)state;
    expect("{{hosts}}", "{hosts}");
    expect("--x={{nnodes}}", "--x={nnodes}");
    expect("{{{hosts}}}", "{{{hosts}}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_words),
        cmocka_unit_test(test_values_of_options),
        cmocka_unit_test(test_code_is_left_alone),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
