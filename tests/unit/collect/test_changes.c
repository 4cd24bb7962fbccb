// Files of other kernels, and damaged files, for sources that read lists and small files: new and
// missing lines, files that are truncated at any byte, numbers that are too large, files that
// vanish and reappear, 256 processors. A value is correct or missing, but never wrong.
#include "tree.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

enum { SERIES_MAX = 64, TEXT_MAX = 4096, BESIDE_MAX = 4 };

static const struct changed {
    const char *source, *path, *text;
    unsigned titles;                   // title lines before the others
    const char *beside[BESIDE_MAX][2]; // other files that the source needs
    const char *added, *series,
        // `added` is a line of another kernel; with `wrapped`, this series has the value 2^64 - 1
        *first_tag;
    // the value of `overflown` is one more, so it is missing
    const char *wrapped, *overflown, *second_tag;
    // not compared line by line, because its values are sums
    const char *alone;
} files[] = {
    {.source = "cgroup",
     .path = "sys/fs/cgroup/job/cpu.stat",
     .text =
         "usage_usec 1500000\nuser_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n",
     .beside = {{"proc/self/cgroup", "0::/job\n"},
                {"proc/self/mountinfo", "29 25 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}},
     .added = "core_sched.force_idle_usec 77\n",
     .series = "cgroup_periods_total",
     .wrapped = "nr_periods 18446744073709551615\n",
     .overflown = "nr_periods 18446744073709551616\n"},
    {.source = "cgroup",
     .path = "sys/fs/cgroup/job/memory.events",
     .text = "low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n",
     .beside = {{"proc/self/cgroup", "0::/job\n"},
                {"proc/self/mountinfo", "29 25 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}},
     .added = "oom_group_kill 5\n",
     .series = "cgroup_oom_kills_total",
     .wrapped = "oom_kill 18446744073709551615\n",
     .overflown = "oom_kill 18446744073709551616\n"},
    {.source = "cgroup",
     .path = "sys/fs/cgroup/cpu/job/cpu.stat",
     .text = "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n",
     .beside = {{"proc/self/cgroup", "2:cpu,cpuacct:/job\n"},
                {"proc/self/mountinfo",
                 "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"}},
     .added = "wait_sum 9\n",
     .series = "cgroup_throttled_periods_total",
     .wrapped = "nr_throttled 18446744073709551615\n",
     .overflown = "nr_throttled 18446744073709551616\n"},
    {.source = "lustre",
     .path = "proc/fs/lustre/llite/scratch-ff/stats",
     .text = "snapshot_time 1700000000.1 secs.nsecs\nread_bytes 12 samples [bytes] 4096 1048576 "
             "8392704\n"
             "write_bytes 3 samples [bytes] 1 2 5\nopen 34 samples [usecs] 1 2 3 4\ngetattr 8 "
             "samples [reqs]\n",
     .added = "start_time 1690000000.1 secs.nsecs\n",
     .series = "lustre_opens_total",
     .first_tag = "scratch",
     .wrapped = "open 18446744073709551615 samples [regs]\n",
     .overflown = "open 18446744073709551616 samples [regs]\n"},
    {.source = "nfs",
     .path = "proc/net/rpc/nfs",
     .text = "net 0 0 0 0\nrpc 1234 5 1234\nproc3 22 0 1\nproc4 2 1 2\n",
     .added = "proc5 1 2\n",
     .series = "nfs_calls_total",
     .wrapped = "rpc 18446744073709551615 5 1\n",
     .overflown = "rpc 18446744073709551616 5 1\n"},
    {.source = "nfs",
     .path = "proc/self/mountstats",
     .text = "device a:/h mounted on /home with fstype nfs4 statvers=1.1\n\topts:\trw\n\tbytes:\t1 "
             "2 3 4 5 6 7 8\n",
     .titles = 1,
     .beside = {{"proc/net/rpc/nfs", "rpc 1 2 3\n"}},
     .added = "\txprt:\ttcp 0 0 1\n",
     .series = "nfs_read_bytes_total",
     .first_tag = "/home",
     .wrapped = "\tbytes:\t1 2 3 4 18446744073709551615 6 7 8\n",
     .overflown = "\tbytes:\t1 2 3 4 18446744073709551616 6 7 8\n"},
    {.source = "interrupts",
     .path = "proc/interrupts",
     .text =
         "           CPU0       CPU1\n 24:          1          2  IO-APIC   5-edge      ACPI:Ged\n"
         "LOC:    1020304    2030405   Local timer interrupts\nERR:          7\n",
     .titles = 1,
     .added = "not a line of counts\n",
     .series = "interrupt_count_total",
     .first_tag = "ERR",
     .wrapped = "ERR: 18446744073709551615\n",
     .overflown = "ERR: 18446744073709551616\n",
     .alone = "interrupt_lines"},
};

enum { FILES = sizeof files / sizeof *files };

// All values of the source by name and tag, as comparable text.
struct values {
    size_t count;
    struct value {
        char series[128];
        double value;
    } all[SERIES_MAX];
};

static size_t set_of(struct collect *c, const char *source)
{
    struct collect_set set;
    for (size_t i = 0; i < collect_set_count(c); i++) {
        collect_get_set(c, i, &set);
        if (str_eq(set.source, str_of(source)))
            return i;
    }
    fail_msg("no source %s", source);
    return 0;
}

static void sample(struct probe *p, const struct changed *file, struct values *out)
{
    static int64_t t_ns = 1000000000;
    double values[STORE_SET_SERIES_MAX];
    size_t index = set_of(p->c, file->source);
    struct collect_set set;
    uint32_t generation = 0;
    collect_get_set(p->c, index, &set);
    while (set.generation !=
           // a renamed line may have made a series, whose first value comes with the next sample
           generation) {
        generation = set.generation;
        collect_sample(p->c, index, t_ns += 10 * SECOND, values);
        collect_get_set(p->c, index, &set);
    }
    out->count = 0;
    for (size_t i = 0; i < set.count; i++) {
        const struct collect_series *series = &set.series[i];
        if (store_is_missing(values[i]) ||
            (file->alone && str_eq(series->metric->metric.name, str_of(file->alone))))
            continue;
        struct value *value = &out->all[out->count++];
        struct str tag =
            series->label_count ? series->labels[series->label_count - 1].value : STR("");
        snprintf(value->series, sizeof value->series, "%.*s %.*s",
                 STR_ARG(series->metric->metric.name), STR_ARG(tag));
        value->value = values[i];
        assert_true(out->count < SERIES_MAX);
    }
}

// Each value of `some` is in `all`, and equal.
static void is_part_of(const struct values *some, const struct values *all)
{
    for (size_t i = 0; i < some->count; i++) {
        size_t k = 0;
        while (k < all->count && strcmp(all->all[k].series, some->all[i].series) != 0)
            k++;
        if (k == all->count || all->all[k].value != some->all[i].value)
            fail_msg("%s is %g", some->all[i].series, some->all[i].value);
    }
}

static struct probe begin(struct tree *t, const struct changed *file)
{
    tree_make(t);
    for (size_t i = 0; i < BESIDE_MAX && file->beside[i][0]; i++)
        tree_write(t, file->beside[i][0], file->beside[i][1]);
    tree_write(t, file->path, file->text);
    probe_deadline_ns = 60 * SECOND;
    return probe_make_with(t->root, 4, getuid(), "", file->source);
}

static void lines_come_and_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        const struct changed *file = &files[i];
        struct tree t;
        struct probe p = begin(&t, file);
        struct values all, now;
        char text[TEXT_MAX];
        sample(&p, file, &all);
        assert_true(all.count > 0);
        struct str rest = str_of(file->text), line;
        for (unsigned at = 0; (line = str_cut(&rest, '\n')).size; at++) {
            int before = (int)(line.data - file->text);
            // Adds a line in front of each, except of a title.
            if (at >= file->titles) {
                snprintf(text, sizeof text, "%.*s%s%s", before, file->text, file->added, line.data);
                tree_write(&t, file->path, text);
                sample(&p, file, &now);
                assert_int_equal(now.count, all.count);
                is_part_of(&now, &all);
            }
            // Removes each line.
            snprintf(text, sizeof text, "%.*s%s", before, file->text, line.data + line.size + 1);
            tree_write(&t, file->path, text);
            sample(&p, file, &now);
            if (at >= file->titles)
                is_part_of(&now, &all);
        }
        probe_free(&p);
        tree_free(&t);
    }
}

static void numbers_at_their_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        const struct changed *file = &files[i];
        struct tree t;
        struct probe p = begin(&t, file);
        struct values all;
        char text[TEXT_MAX];
        sample(&p, file, &all);
        // The changed line begins like its replacement.
        size_t word = strcspn(file->wrapped + strspn(file->wrapped, "\t "), " \t:") +
                      strspn(file->wrapped, "\t ");
        ptrdiff_t at = 0;
        while (strncmp(file->text + at, file->wrapped, word) != 0 ||
               (file->text[at + (ptrdiff_t)word] != ' ' && file->text[at + (ptrdiff_t)word] != ':'))
            at++;
        const char *behind = strchr(file->text + at, '\n') + 1;
        snprintf(text, sizeof text, "%.*s%s%s", (int)at, file->text, file->wrapped, behind);
        tree_write(&t, file->path, text);
        sample(&p, file, &all);
        assert_true(probe_sample(&p, file->source, 100000 * SECOND) > 0);
        assert_true(probe_tagged(&p, file->source, file->series, file->first_tag,
                                 file->second_tag) == 18446744073709551615.0);
        snprintf(text, sizeof text, "%.*s%s%s", (int)at, file->text, file->overflown, behind);
        tree_write(&t, file->path, text);
        probe_sample(&p, file->source, 200000 * SECOND);
        assert_true(store_is_missing(
            probe_tagged(&p, file->source, file->series, file->first_tag, file->second_tag)));
        // Restores the original contents.
        tree_write(&t, file->path, file->text);
        assert_true(probe_sample(&p, file->source, 300000 * SECOND) > 0);
        assert_false(store_is_missing(
            probe_tagged(&p, file->source, file->series, file->first_tag, file->second_tag)));
        probe_free(&p);
        tree_free(&t);
    }
}

// Files that must be read to their end are truncated anywhere: only the last number may be wrong,
// and all values return with the file.
static void cut_off_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        const struct changed *file = &files[i];
        struct tree t;
        struct probe p = begin(&t, file);
        struct values all, now;
        char text[TEXT_MAX];
        sample(&p, file, &all);
        for (size_t size = 0; size < strlen(file->text); size++) {
            snprintf(text, sizeof text, "%.*s", (int)size, file->text);
            tree_write(&t, file->path, text);
            sample(&p, file, &now);
            assert_true(now.count <= all.count + 1);
        }
        tree_write(&t, file->path, file->text);
        sample(&p, file, &now);
        is_part_of(&all, &now);
        probe_free(&p);
        tree_free(&t);
    }
}

// Small files with a value each become unreadable, then readable again. `other` stays readable.
static void files_vanish_and_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *source, *path, *text, *other, *other_text;
    } small[] = {
        {"infiniband", "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "5\n",
         "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n"},
        {"slingshot", "sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets", "5@17.0\n",
         "sys/class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets", "6@17.0\n"},
        {"energy", "sys/cray/pm_counters/power", "812 W 17 us\n", "sys/cray/pm_counters/energy",
         "9 J 17 us\n"},
        {"energy", "sys/class/powercap/intel-rapl:0/energy_uj", "5000000\n",
         "sys/cray/pm_counters/energy", "9 J\n"},
        {"temperature", "sys/class/hwmon/hwmon0/temp1_input", "45500\n",
         "sys/class/hwmon/hwmon0/temp2_input", "1\n"},
        {"fan", "sys/class/hwmon/hwmon0/fan1_input", "4200\n", "sys/class/hwmon/hwmon0/fan2_input",
         "1\n"},
    };
    static const char *const bad[] = {"", "\n", "N/A\n", "-\n", "99999999999999999999999999\n"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        struct tree t;
        tree_make(&t);
        tree_write(&t, "sys/class/hwmon/hwmon0/name", "chip\n");
        tree_write(&t, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
        tree_write(&t, small[i].path, small[i].text);
        tree_write(&t, small[i].other, small[i].other_text);
        probe_deadline_ns = 60 * SECOND;
        struct probe p = probe_make_with(t.root, 2, getuid(), "", small[i].source);
        int both = probe_sample(&p, small[i].source, SECOND);
        assert_true(both >= 2);
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            tree_write(&t, small[i].path, bad[k]);
            assert_int_equal(probe_sample(&p, small[i].source, (int64_t)(2 * k + 2) * SECOND),
                             both - 1);
            tree_write(&t, small[i].path, small[i].text);
            assert_int_equal(probe_sample(&p, small[i].source, (int64_t)(2 * k + 3) * SECOND),
                             both);
        }
        probe_free(&p);
        tree_free(&t);
    }
}

static void interrupts_of_256_processors(void **state)
{
    (void)state;
    enum { PROCESSORS = 256, LINES = 400 };
    static char text[2 << 20];
    size_t size = 0;
    for (int i = 0; i < PROCESSORS; i++)
        size +=
            (size_t)snprintf(text + size, sizeof text - size, "%s CPU%-7d", i ? "" : "     ", i);
    size += (size_t)snprintf(text + size, sizeof text - size, "\n");
    for (int line = 0; line < LINES; line++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%4d:", line);
        for (int i = 0; i < PROCESSORS; i++)
            size += (size_t)snprintf(text + size, sizeof text - size, " %10d", line == 0 ? 0 : i);
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "  IR-PCI-MSI  %d-edge      nvme0q%d\n", line, line);
    }
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/interrupts", text);
    struct probe p = probe_make_with(t.root, 4, getuid(), "", "interrupts");
    // the line that was never present has no series
    assert_int_equal(probe_sample(&p, "interrupts", SECOND), 1 + LINES - 1);
    assert_true(probe_tagged(&p, "interrupts", "interrupt_count_total", "399", NULL) ==
                255 * 256 / 2);
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_and_go),
        cmocka_unit_test(numbers_at_their_end),
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(files_vanish_and_come_back),
        cmocka_unit_test(interrupts_of_256_processors),
    };
    return cmocka_run_group_tests_name("collect/changes", tests, NULL, NULL);
}
