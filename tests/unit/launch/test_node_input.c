// Parses the lines that the launcher sends to a node.
#include "launch/node_input.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The reported news in order, and the previous children.
static char news[1024];

static void on_news(void *user, enum node_input_news kind, struct str value)
{
    static const char *const names[] = {"parent",    "children", "hosts",   "finish", "drop",
                                        "collector", "url",      "name-in", "end"};
    const struct node_input *t = user;
    size_t size = strlen(news);
    snprintf(news + size, sizeof news - size, "%s=%.*s(%s);", names[kind], STR_ARG(value),
             t->children ? t->children : "");
}

static int take(struct node_input *t, const char *text, struct error *e)
{
    return node_input_take(t, str_of(text), on_news, t, e);
}

static void begin(struct node_input *t)
{
    news[0] = 0;
    node_input_init(t);
    assert_int_equal(take(t, "sonde-node 2\n", NULL), 0);
}

static const char all[] = "sonde-node 2\n"
                          "job 4711\n"
                          "folder /tmp/sonde-0/4711\n"
                          "token 0123\n"
                          "key abcd\n"
                          "transport auto\n"
                          "command mpirun -n 2 ./a.out\n"
                          "record /home/u/runs/4711\n"
                          "agent --rate=0.5\n"
                          "agent --job-meta=a b\n"
                          "beat-ms 100\norphan-ms 0\nstop-ms x\n"
                          "name n2\n"
                          "hosts n1,n2\n"
                          "what is this\n"
                          "go\n"
                          "beat\n"
                          "parent 10.0.0.1 99\n"
                          "children n4,n5\n"
                          "children n5\n"
                          "collector c false\n"
                          "finish .mark\n"
                          "drop\n";

static void check_all(const struct node_input *t)
{
    assert_string_equal(t->job, "4711");
    assert_string_equal(t->folder, "/tmp/sonde-0/4711");
    assert_string_equal(t->token, "0123");
    assert_string_equal(t->key, "abcd");
    assert_string_equal(t->transport, "auto");
    assert_string_equal(t->command, "mpirun -n 2 ./a.out");
    assert_string_equal(t->record, "/home/u/runs/4711");
    assert_string_equal(t->name, "n2");
    assert_string_equal(t->hosts, "n1,n2");
    assert_string_equal(t->parents, "10.0.0.1 99");
    assert_string_equal(t->children, "n5");
    assert_string_equal(t->mark, ".mark");
    assert_int_equal(t->argument_count, 2);
    assert_string_equal(t->arguments[0], "--rate=0.5");
    assert_string_equal(t->arguments[1], "--job-meta=a b");
    assert_int_equal(t->beat_ms, 100);
    assert_int_equal(t->orphan_ms, 120000); // 0 is not a valid time
    assert_int_equal(t->stop_ms, 10000);
    assert_true(t->whole);
    assert_string_equal(news,
                        "hosts=n1,n2();parent=10.0.0.1 99();children=n4,n5();children=n5(n4,n5);"
                        "collector=c false(n5);finish=.mark(n5);drop=(n5);");
}

static void all_lines_are_read(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof all; piece += piece < 40 ? 1 : sizeof all - 41) {
        struct node_input t;
        news[0] = 0;
        node_input_init(&t);
        for (size_t at = 0; at < sizeof all - 1; at += piece) {
            struct str part = str_slice(str_of(all), at, at + piece);
            assert_int_equal(node_input_take(&t, part, on_news, &t, NULL), 0);
        }
        check_all(&t);
        node_input_free(&t);
        assert_null(t.children);
    }
}

static void lines_for_other_nodes_are_ignored(void **state)
{
    (void)state;
    struct node_input t;
    begin(&t);
    assert_int_equal(take(&t, "@ end\nname n2\n", NULL), 0);
    assert_int_equal(take(&t, "@n2 children n4\n@n22 end\n@n end\n@n2\n@ end\n", NULL), 0);
    assert_int_equal(take(&t, "name-in A\n@n2 end\nend\n", NULL), 0);
    assert_string_equal(news, "children=n4();name-in=A(n4);end=(n4);end=(n4);");
    node_input_free(&t);
}

static void other_versions_are_refused(void **state)
{
    (void)state;
    static const char *const others[] = {"sonde-node 1\n",  "job 4711\n",
                                         "sonde-node\n",    "\n",
                                         "sonde-node 2x\n", "@n2 sonde-node 2\n"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct node_input t;
        struct error e;
        node_input_init(&t);
        assert_int_equal(take(&t, others[i], &e), -EPROTO);
        assert_non_null(strstr(e.text, "another version"));
        node_input_free(&t);
    }
}

// Values are never truncated, because half a path is another path.
static void lines_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    struct node_input t;
    struct error e;
    char *long_one = malloc(NODE_INPUT_LINE_MAX + 2);
    assert_non_null(long_one);
    memset(long_one, 'x', NODE_INPUT_LINE_MAX + 1);
    long_one[NODE_INPUT_LINE_MAX + 1] = 0;

    begin(&t);
    assert_int_equal(take(&t, "folder /", &e), 0);
    long_one[FOLDER_PATH_MAX - 2] = 0;
    assert_int_equal(take(&t, long_one, &e), 0);
    assert_int_equal(take(&t, "\n", &e), 0);
    assert_int_equal(strlen(t.folder), FOLDER_PATH_MAX - 1);
    assert_int_equal(take(&t, "folder /", &e), 0);
    long_one[FOLDER_PATH_MAX - 2] = 'x';
    long_one[FOLDER_PATH_MAX - 1] = 0;
    assert_int_equal(take(&t, long_one, &e), 0);
    assert_int_equal(take(&t, "\n", &e), -EMSGSIZE);
    assert_non_null(strstr(e.text, "\"folder\""));
    node_input_free(&t);

    begin(&t);
    long_one[FOLDER_PATH_MAX - 1] = 'x';
    assert_int_equal(take(&t, long_one, &e), -EMSGSIZE);
    assert_non_null(strstr(e.text, "a line of more than"));
    node_input_free(&t);
    free(long_one);

    begin(&t);
    for (int i = 0; i < NODE_INPUT_ARGUMENTS_MAX; i++)
        assert_int_equal(take(&t, "agent --x\n", &e), 0);
    assert_int_equal(take(&t, "agent --x\n", &e), -E2BIG);
    node_input_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lines_are_read),
        cmocka_unit_test(lines_for_other_nodes_are_ignored),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(lines_beyond_the_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
