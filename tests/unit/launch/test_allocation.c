#include "launch/allocation.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char own[256], file[64];

static void forget_environment(void)
{
    static const char *const names[] = {"SLURM_JOB_NODELIST",
                                        "SLURMD_NODENAME",
                                        "PBS_NODEFILE",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE",
                                        "PALS_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static int set_up(void **state)
{
    (void)state;
    forget_environment();
    snprintf(file, sizeof file, "/tmp/sonde-hosts-XXXXXX");
    int fd = mkstemp(file);
    if (fd >= 0)
        close(fd);
    return fd < 0 || gethostname(own, sizeof own - 1) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    return 0;
}

static void write_file(const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect(const struct allocation *a, enum allocation_kind kind, bool here,
                   const char *names)
{
    struct buf text = {0};
    for (size_t i = 0; i < a->hosts.count; i++)
        buf_printf(&text, "%s%s", i ? " " : "", a->hosts.names[i]);
    assert_string_equal(buf_cstr(&text), names);
    assert_int_equal(a->kind, kind);
    assert_int_equal(a->here, here);
    for (size_t i = 0; i < a->hosts.count; i++)
        assert_int_equal(hosts_find(&a->hosts, str_of(a->hosts.names[i])), i);
    buf_free(&text);
}

static void the_first_source_of_hosts_counts(void **state)
{
    (void)state;
    struct allocation a;
    struct error e;
    char names[600], list[600];
    assert_int_equal(allocation_find(NULL, NULL, &a, NULL), 0);
    expect(&a, ALLOCATION_LOCAL, true, "");
    allocation_free(&a);

    write_file("p1\np1\np2 # two\n# p3\n\np4 slots=4\np5:8\nfe80::1\n");
    setenv("PBS_NODEFILE", file, 1);
    assert_int_equal(allocation_find(NULL, NULL, &a, NULL), 0);
    expect(&a, ALLOCATION_PBS, false, "p1 p2 p4 p5 fe80::1");
    allocation_free(&a);

    // This machine comes first, under its name in the list.
    snprintf(list, sizeof list, "s[1-2],%s,s3", own);
    snprintf(names, sizeof names, "%s s1 s2 s3", own);
    setenv("SLURM_JOB_NODELIST", list, 1);
    assert_int_equal(allocation_find(NULL, NULL, &a, NULL), 0);
    expect(&a, ALLOCATION_SLURM, true, names);
    allocation_free(&a);
    setenv("SLURMD_NODENAME", "s2", 1);
    setenv("SLURM_JOB_NODELIST", "s[1-3]", 1);
    assert_int_equal(allocation_find(NULL, NULL, &a, NULL), 0);
    expect(&a, ALLOCATION_SLURM, true, "s2 s1 s3");
    allocation_free(&a);

    assert_int_equal(allocation_find("h1,127.0.0.1", NULL, &a, NULL), 0);
    expect(&a, ALLOCATION_SSH, true, "127.0.0.1 h1");
    allocation_free(&a);
    write_file("f1\n");
    assert_int_equal(allocation_find(NULL, file, &a, NULL), 0);
    expect(&a, ALLOCATION_SSH, false, "f1");
    allocation_free(&a);

    assert_int_equal(allocation_find("h1", file, &a, &e), -EINVAL);
    assert_int_equal(allocation_find("h[1-", NULL, &a, &e), -EINVAL);
    assert_true(strncmp(e.text, "--hosts: ", 9) == 0);
    assert_int_equal(allocation_find(NULL, "/nowhere/hosts", &a, &e), -ENOENT);
    write_file("a\nb c\n;reboot\n");
    assert_int_equal(allocation_find(NULL, file, &a, &e), -EINVAL);
    assert_non_null(strstr(e.text, "line 3: ';reboot'"));
    write_file("# nobody\n");
    assert_int_equal(allocation_find(NULL, file, &a, &e), -EINVAL);
    assert_non_null(strstr(e.text, "names no hosts"));
    forget_environment();
}

static void here(void **state)
{
    (void)state;
    assert_true(allocation_is_here("localhost"));
    assert_true(allocation_is_here("127.0.0.1"));
    assert_true(allocation_is_here(own));
    assert_false(allocation_is_here("192.0.2.1"));
    assert_false(allocation_is_here("no-such-host-here"));
    char longer[300];
    snprintf(longer, sizeof longer, "%.*s.example.org", (int)strcspn(own, "."), own);
    if (!strchr(own, '.'))
        assert_true(allocation_is_here(longer));
}

static void copies(void **state)
{
    (void)state;
    long rank = -1;
    forget_environment();
    assert_int_equal(allocation_copies(&rank), 0);
    setenv("SLURM_PROCID", "0", 1); // a batch script
    assert_int_equal(allocation_copies(&rank), 0);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    assert_int_equal(allocation_copies(&rank), 0);
    setenv("SLURM_STEP_NUM_TASKS", "8", 1);
    setenv("SLURM_PROCID", "3", 1);
    assert_int_equal(allocation_copies(&rank), 8);
    assert_int_equal(rank, 3);
    setenv("SLURM_STEP_NUM_TASKS", "many", 1);
    assert_int_equal(allocation_copies(&rank), 0);
    forget_environment();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_source_of_hosts_counts),
        cmocka_unit_test(here),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
