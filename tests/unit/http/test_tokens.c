// The file of a fixed token: created once, written completely, and refused if other users could
// open it.
#include "http/tokens.h"
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sonde-tokens-XXXXXX", path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/token", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); // the folder has no other files
}

static void *make(void *user)
{
    struct error e = {0};
    char *token = user;
    if (token_read(path, true, token, &e) != 0)
        snprintf(token, TOKEN_TEXT_MAX, "%.200s", e.text);
    return NULL;
}

static void test_made_by_many_at_once(void **state)
{
    (void)state;
    enum { MAKERS = 8, ROUNDS = 50 };
    char first[TOKEN_TEXT_MAX] = "";
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[MAKERS];
        static char tokens[MAKERS][TOKEN_TEXT_MAX];
        for (int i = 0; i < MAKERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, make, tokens[i]), 0);
        for (int i = 0; i < MAKERS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < MAKERS; i++) {
            assert_int_equal(strlen(tokens[i]), TOKEN_MADE);
            assert_string_equal(tokens[i], tokens[0]);
        }
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_string_not_equal(tokens[0], first);
        memcpy(first, tokens[0], sizeof first);
        assert_int_equal(unlink(path), 0);
    }
}

static void write_file(const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_what_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mode_t mode;
        int code;
        const char *token;
    } rows[] = {
        {"0123456789012345678901234567890a\nrest", 0600, 0, "0123456789012345678901234567890a"},
        {"0123456789012345678901234567890a\r\n", 0400, 0, "0123456789012345678901234567890a"},
        {"0123456789012345678901234567890", 0600, -EINVAL, NULL}, // too short
        {"", 0600, -EINVAL, NULL},
        {"0123456789012345678901234567890;", 0600, -EINVAL, NULL},
        {"0123456789012345678901234567890a", 0640, -EPERM, NULL},
        {"0123456789012345678901234567890a", 0604, -EPERM, NULL},
        {"0123456789012345678901234567890a", 0620, -EPERM, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char token[TOKEN_TEXT_MAX];
        struct error e = {0};
        write_file(rows[i].text, rows[i].mode);
        assert_int_equal(token_read(path, true, token, &e), rows[i].code);
        if (rows[i].token)
            assert_string_equal(token, rows[i].token);
        else
            assert_non_null(strstr(e.text, path));
        unlink(path);
    }
}

static void test_no_link(void **state)
{
    (void)state;
    char token[TOKEN_TEXT_MAX], link_path[80];
    struct error e = {0};
    snprintf(link_path, sizeof link_path, "%s-link", path);
    assert_int_equal(symlink(path, link_path), 0);
    // the link's target is not made either
    assert_int_equal(token_read(link_path, true, token, &e), -ELOOP);
    assert_int_equal(access(path, F_OK), -1);
    unlink(link_path);
    assert_int_equal(token_read(path, false, token, &e), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_by_many_at_once),
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_no_link),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
