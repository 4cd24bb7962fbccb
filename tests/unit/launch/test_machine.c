// The description of a machine, from folders like those of several machines.
#include "launch/folder.h"
#include "launch/machine.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/sonde-machine-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(root, NULL);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    assert_int_equal(folder_make_all(path, NULL), 0);
    assert_int_equal(folder_write(path, name, str_of(text), NULL), 0);
}

static void is(const char *expected)
{
    json_t *machine = machine_describe(root);
    char *text = json_dumps(machine, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
    free(text);
    json_decref(machine);
}

static void a_machine_without_files(void **state)
{
    (void)state;
    is("{}");
}

static void a_node_with_gpus(void **state)
{
    (void)state;
    put("proc/sys/kernel", "osrelease", "6.1.0-28-amd64\n");
    put("etc", "os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
    put("proc", "cpuinfo", "processor\t: 0\nmodel name\t: EPYC 9654\n\nmodel name\t: other\n");
    for (int i = 0; i < 4; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "proc/driver/nvidia/gpus/0000:0%d:00.0", i);
        put(folder, "information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: \t\t 3\n");
    }
    put("sys/module/nvidia", "version", "550.90.07\n");
    put("sys/class/drm/card1/device", "product_name", "Instinct MI300X\n");
    put("sys/class/drm/card1-DP-1/device", "product_name", "a connector\n");
    put("sys/class/drm/renderD128/device", "product_name", "Instinct MI300X\n");
    is("{\"cpu\":\"EPYC 9654\",\"drivers\":{\"nvidia\":\"550.90.07\"},"
       "\"gpus\":[\"4 x NVIDIA H100 80GB HBM3\",\"1 x Instinct MI300X\"],"
       "\"kernel\":\"6.1.0-28-amd64\",\"system\":\"Debian GNU/Linux 12\"}");
}

static void files_without_contents_give_no_facts(void **state)
{
    (void)state;
    char large[2 * MACHINE_TEXT_MAX];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    put("proc/sys/kernel", "osrelease", large);
    put("etc", "os-release", "PRETTY_NAME\nPRETTY_NAME=\"\"\n");
    put("proc", "cpuinfo", "model name\t: \x1b[2J\n");
    put("sys/module/nvidia", "version", "\n");
    put("sys/module/amdgpu", "version", "\xff\n");
    is("{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_without_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_node_with_gpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_without_contents_give_no_facts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
