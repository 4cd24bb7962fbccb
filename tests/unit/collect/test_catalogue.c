// The catalogue: its promises to readers, and its aliases.
#include "collect/catalogue.h"
#include "unit/test.h"

static void rows_are_complete(void **state)
{
    (void)state;
    size_t count;
    const struct collect_metric *all = collect_catalogue(&count);
    assert_int_equal(count, METRIC_COUNT);
    for (size_t i = 0; i < count; i++) {
        const struct store_metric *m = &all[i].metric;
        assert_in_range(m->name.size, 1, STORE_NAME_MAX);
        for (size_t at = 0; at < m->name.size; at++)
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789_", m->name.data[at]));
        assert_in_range(m->help.size, 1, STORE_TEXT_MAX);
        assert_int_equal(m->help.data[m->help.size - 1], '.');
        assert_in_range(m->level, 1, 4);
        assert_in_range(m->unit.size, 0, STORE_UNIT_MAX);
        assert_int_equal(str_ends(m->name, STR("_total")), m->kind == STORE_COUNTER);
        if (str_eq(m->unit, STR("bytes")))
            assert_true(str_find(m->name, STR("_bytes")) > 0);
        if (str_eq(m->unit, STR("percent")))
            assert_true(str_ends(m->name, STR("_percent")));
    }
}

static void names_and_aliases_are_unique(void **state)
{
    (void)state;
    size_t count;
    const struct collect_metric *all = collect_catalogue(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(collect_find(all[i].metric.name), &all[i]);
        struct str rest = all[i].aliases;
        for (struct str alias = str_word(&rest); alias.size; alias = str_word(&rest))
            assert_ptr_equal(collect_find(alias), &all[i]);
    }
}

static void old_names_answer(void **state)
{
    (void)state;
    static const struct {
        struct str name;
        enum metric_symbol row;
    } facts[] = {
        {{"load_average", 12}, METRIC_LOAD_1M},
        {{"used_RAM", 8}, METRIC_MEMORY_USED_PERCENT},
        {{"cpu_percent", 11}, METRIC_CPU_PERCENT},
        {{"num_running_processes", 21}, METRIC_OWN_PROCESSES},
        {{"db_size", 7}, METRIC_SONDE_DB_SIZE},
        {{"DeviceUtilization", 17}, METRIC_GPU_UTILIZATION},
        {{"DeviceMemoryUtilization", 23}, METRIC_GPU_MEMORY_USED_PERCENT},
        {{"DevicePowerUsage", 16}, METRIC_GPU_POWER},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        assert_ptr_equal(collect_find(facts[i].name), &catalogue_metrics[facts[i].row]);
    assert_null(collect_find(STR("no_such_metric")));
    assert_null(collect_find(STR("")));
    assert_null(collect_find(STR("load_averag")));
}

static void rows_of_a_source_stand_together(void **state)
{
    (void)state;
    size_t covered = 0;
    for (size_t i = 0; i < METRIC_COUNT;) {
        enum metric_symbol first;
        size_t rows = catalogue_rows(catalogue_metrics[i].source, &first);
        assert_int_equal(first, i);
        i += rows;
        covered += rows;
    }
    assert_int_equal(covered, METRIC_COUNT);
    enum metric_symbol first;
    assert_int_equal(catalogue_rows(STR("nothing"), &first), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(names_and_aliases_are_unique),
        cmocka_unit_test(old_names_answer),
        cmocka_unit_test(rows_of_a_source_stand_together),
    };
    return cmocka_run_group_tests_name("collect/catalogue", tests, NULL, NULL);
}
