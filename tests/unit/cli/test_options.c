#include "cli/options.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS_MAX = 16 };

// Parses a command line of words separated by blanks for `command`. The words live until the next
// call.
static int parse(enum command_id command, const char *line, struct options *o, struct error *e)
{
    static char text[256];
    static char *argv[WORDS_MAX + 1];
    int argc = 0;
    bool help;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return options_parse_flags(command, argc, argv, o, &help, e);
}

static void the_tables_are_consistent(void **state)
{
    (void)state;
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        struct options o = {0};
        struct error e = {0};
        assert_true(row->commands != 0);
        assert_true(row->help[0] != 0);
        assert_true((row->type == OPTION_FLAG) == (row->argument[0] == 0));
        if (row->initial[0] &&
            options_set(&o, (enum option_id)i, row->initial, FROM_DEFAULT, &e) < 0)
            fail_msg("default of --%s: %s", row->name, e.text);
        for (int j = 0; j < i; j++) {
            const struct option_row *other = &option_rows[j];
            // The same word may have different meanings in two commands.
            if (row->commands & other->commands)
                assert_string_not_equal(row->name, other->name);
            if (row->commands & other->commands && row->letter)
                assert_int_not_equal(row->letter, other->letter);
            if (row->key[0])
                assert_string_not_equal(row->key, other->key);
            if (row->dragon_key[0])
                assert_string_not_equal(row->dragon_key, other->dragon_key);
        }
    }
}

static void flags_in_all_spellings(void **state)
{
    (void)state;
    static const char *const lines[] = {"-l 3 -q cmd",
                                        "-l3 -q cmd",
                                        "-ql3 cmd",
                                        "-ql 3 -- cmd",
                                        "--telemetry-level 3 --quiet cmd",
                                        "--telemetry-level=3 --quiet=yes cmd"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct options o;
        struct error e;
        assert_int_equal(parse(COMMAND_RUN, lines[i], &o, &e), 0);
        assert_int_equal(options_int(&o, OPT_LEVEL), 3);
        assert_true(options_flag(&o, OPT_QUIET));
        assert_int_equal(o.argument_count, 1);
        assert_string_equal(o.arguments[0], "cmd");
        assert_null(o.arguments[1]);
        options_free(&o);
    }
}

static void a_commands_own_flags_are_its_own(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(parse(COMMAND_RUN, "cmd -l 4 --quiet -- x", &o, NULL), 0);
    assert_int_equal(options_int(&o, OPT_LEVEL), 2);
    assert_false(options_flag(&o, OPT_QUIET));
    assert_int_equal(o.argument_count, 6);
    assert_string_equal(o.arguments[4], "--");
    options_free(&o);
    assert_int_equal(parse(COMMAND_QUERY, "sum:x path --json", &o, NULL), 0);
    assert_true(options_flag(&o, OPT_JSON));
    assert_int_equal(o.argument_count, 2);
    options_free(&o);
}

static void negative_numbers_are_no_flags(void **state)
{
    (void)state;
    struct options o;
    assert_int_equal(parse(COMMAND_PUT, "loss -1.5 rank=2", &o, NULL), 0);
    assert_int_equal(o.argument_count, 3);
    assert_string_equal(o.arguments[1], "-1.5");
    options_free(&o);
    assert_int_equal(parse(COMMAND_PUT, "loss -.5", &o, NULL), 0);
    assert_string_equal(o.arguments[1], "-.5");
    options_free(&o);
}

static void refuse(enum command_id command, const char *line, const char *words)
{
    struct options o;
    struct error e = {0};
    assert_int_equal(parse(command, line, &o, &e), -EINVAL);
    if (!strstr(e.text, words))
        fail_msg("'%s' does not say '%s'", e.text, words);
    options_free(&o);
}

static void seconds_may_have_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double seconds;
    } rows[] = {{"--history 90", 90},
                {"--history=90s", 90},
                {"--history 1.5m", 90},
                {"--history 2h", 7200},
                {"--history 1d", 86400}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct options o;
        assert_int_equal(parse(COMMAND_SIMULATE, rows[i].line, &o, NULL), 0);
        assert_true(options_number(&o, OPT_HISTORY) == rows[i].seconds);
        options_free(&o);
    }
    refuse(COMMAND_SIMULATE, "--history m", "is not seconds");
    refuse(COMMAND_SIMULATE, "--history 5mm", "is not seconds");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refuse(COMMAND_RUN, "--pot 1 x", "unknown option '--pot'; did you mean --port?");
    refuse(COMMAND_RUN, "--port", "--port needs a value: --port=N");
    refuse(COMMAND_RUN, "-p", "-p needs a value");
    refuse(COMMAND_RUN, "-qZ x", "unknown option '-qZ'");
    refuse(COMMAND_RUN, "--rate 1e9 x",
           "--rate: '1e9' is not seconds from 0.01 to 3600 (90, 5m, 2h…)");
    refuse(COMMAND_RUN, "--port 4242.0 x", "is not a whole number from 1 to 65535");
    refuse(COMMAND_RUN, "--quiet=perhaps x", "'perhaps' is not true or false");
    refuse(COMMAND_RUN, "--record= x", "--record: '' is not a text of 1 to 4096 bytes");
    refuse(COMMAND_STATUS, "now", "'now' is one argument too many");
    refuse(COMMAND_RUN, "", "something is missing");
}

static void sizes_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double bytes;
    } sizes[] = {{"1048576", 1048576}, {"2M", 2097152},      {"2m", 2097152},      {"2MB", 2097152},
                 {"2MiB", 2097152},    {"1.5G", 1610612736}, {"1t", 1099511627776}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct options o = {0};
        assert_int_equal(options_set(&o, OPT_SIZE_LIMIT, sizes[i].text, FROM_FLAG, NULL), 0);
        assert_true(options_number(&o, OPT_SIZE_LIMIT) == sizes[i].bytes);
    }
    static const char *const bad[] = {"", "M", "iB", "1X", "1 M", "-1G", "nan", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct options o = {0};
        assert_int_equal(options_set(&o, OPT_SIZE_LIMIT, bad[i], FROM_FLAG, NULL), -EINVAL);
    }
}

static void long_values_are_refused(void **state)
{
    (void)state;
    char text[OPTION_TEXT_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    struct options o = {0};
    assert_int_equal(options_set(&o, OPT_RECORD, text, FROM_FLAG, NULL), -EINVAL);
    assert_int_equal(options_set(&o, OPT_RECORD, text + 1, FROM_FLAG, NULL), 0);
}

static void the_environment_comes_after_flags(void **state)
{
    (void)state;
    struct options o;
    struct error e;
    setenv("SONDE_LEVEL", "4", 1);
    setenv("SONDE_RATE", "", 1);
    assert_int_equal(parse(COMMAND_RUN, "x", &o, NULL), 0);
    assert_int_equal(options_complete(&o, &e), 0);
    assert_int_equal(options_int(&o, OPT_LEVEL), 4);
    assert_int_equal(o.value[OPT_LEVEL].source, FROM_ENVIRONMENT);
    assert_int_equal(o.value[OPT_RATE].source, FROM_DEFAULT); // an empty variable counts as unset
    options_free(&o);
    assert_int_equal(parse(COMMAND_RUN, "-l 1 x", &o, NULL), 0);
    assert_int_equal(options_complete(&o, &e), 0);
    assert_int_equal(options_int(&o, OPT_LEVEL), 1);
    options_free(&o);
    setenv("SONDE_LEVEL", "many", 1);
    assert_int_equal(parse(COMMAND_RUN, "x", &o, NULL), 0);
    assert_int_equal(options_complete(&o, &e), -EINVAL);
    assert_non_null(strstr(e.text, "environment variable SONDE_LEVEL: 'many'"));
    options_free(&o);
    unsetenv("SONDE_LEVEL");
    unsetenv("SONDE_RATE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_are_consistent),
        cmocka_unit_test(flags_in_all_spellings),
        cmocka_unit_test(a_commands_own_flags_are_its_own),
        cmocka_unit_test(negative_numbers_are_no_flags),
        cmocka_unit_test(seconds_may_have_a_unit),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(long_values_are_refused),
        cmocka_unit_test(the_environment_comes_after_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
