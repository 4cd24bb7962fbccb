// Sources whose series appear and disappear: interfaces, disks, folders.
#include "base/clock.h"
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

#define TITLES                                                                                 \
    "Inter-|   Receive                                                |  Transmit\n"           \
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs " \
    "drop fifo colls carrier "                                                                 \
    "compressed\n"

static double net(struct probe *p, const char *name, const char *interface)
{
    return probe_tagged(p, "network", name, interface, NULL);
}

static void interfaces(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/net/dev",
               TITLES "    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                      "  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                      "  eth0:132523858 2756 1 2 0 0 0 0 135489 1671 3 4 0 0 0 0\n");
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = SECOND;
    assert_int_equal(probe_sample(&p, "network", t_ns), 9);
    assert_true(probe_value(&p, "network", "network_interfaces") == 1);
    static const struct {
        const char *name;
        double value;
    } facts[] = {
        {"network_receive_bytes_total", 132523858}, {"network_receive_packets_total", 2756},
        {"network_receive_errors_total", 1},        {"network_receive_drops_total", 2},
        {"network_transmit_bytes_total", 135489},   {"network_transmit_packets_total", 1671},
        {"network_transmit_errors_total", 3},       {"network_transmit_drops_total", 4},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        assert_true(net(&p, facts[i].name, "eth0") == facts[i].value);
    assert_false(probe_has(&p, "network", "network_receive_bytes_total", "lo"));
    // The loopback counts, another interface appears (with counters up to 2^64 - 1), and one
    // counter decreases: the values stay the kernel's.
    uint32_t before = probe_generation(&p, "network");
    tree_write(&t, "proc/net/dev",
               TITLES "    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n"
                      " veth1: 18446744073709551615 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                      "  eth0: 58 2756 1 2 0 0 0 0 135489 1671 3 4 0 0 0 0\n");
    // the new ones have their series from now on
    assert_int_equal(probe_sample(&p, "network", t_ns += SECOND), 9);
    assert_int_equal(probe_generation(&p, "network"), before + 1);
    assert_int_equal(probe_sample(&p, "network", t_ns += SECOND), 25);
    assert_true(net(&p, "network_receive_bytes_total", "lo") == 500);
    assert_true(net(&p, "network_receive_bytes_total", "eth0") == 58);
    assert_true(net(&p, "network_receive_bytes_total", "veth1") == 18446744073709551615.0);
    assert_true(probe_value(&p, "network", "network_interfaces") == 3);
    // One disappears: its values are missing, never 0; then its series disappear, and the others
    // keep theirs.
    tree_write(&t, "proc/net/dev",
               TITLES "    lo: 600 5 0 0 0 0 0 0 600 5 0 0 0 0 0 0\n"
                      "  eth0: 59 2756 1 2 0 0 0 0 135489 1671 3 4 0 0 0 0\n");
    assert_int_equal(probe_sample(&p, "network", t_ns += SECOND), 17);
    assert_true(store_is_missing(net(&p, "network_receive_bytes_total", "veth1")));
    assert_int_equal(probe_generation(&p, "network"), before + 1);
    for (int i = 0; i < 30 && probe_has(&p, "network", "network_receive_bytes_total", "veth1"); i++)
        assert_int_equal(probe_sample(&p, "network", t_ns += SECOND), 17);
    assert_false(probe_has(&p, "network", "network_receive_bytes_total", "veth1"));
    assert_int_equal(probe_generation(&p, "network"), before + 2);
    assert_int_equal(probe_sample(&p, "network", t_ns += SECOND), 17);
    assert_true(net(&p, "network_receive_bytes_total", "lo") == 600);
    assert_true(net(&p, "network_receive_bytes_total", "eth0") == 59);
    probe_free(&p);
    tree_free(&t);
}

// Columns are found by name; a file without its titles is refused, with a reason.
static void columns_of_interfaces(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/net/dev",
               "Inter-| Receive | Transmit\n face |new packets bytes|errs bytes newer\n  ib0: 1 2 "
               "3 4 5 6\n  ib1: 1 x\n"
               "no colon\n: 1 2 3 4 5 6\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_true(probe_sample(&p, "network", SECOND) > 0);
    assert_true(net(&p, "network_receive_packets_total", "ib0") == 2);
    assert_true(net(&p, "network_receive_bytes_total", "ib0") == 3);
    assert_true(net(&p, "network_transmit_errors_total", "ib0") == 4);
    assert_true(net(&p, "network_transmit_bytes_total", "ib0") == 5);
    assert_true(store_is_missing(net(&p, "network_receive_errors_total", "ib0")));
    assert_true(store_is_missing(net(&p, "network_receive_bytes_total", "ib1")));
    tree_write(&t, "proc/net/dev", "  eth0: 1 2 3\n");
    assert_int_equal(probe_sample(&p, "network", 2 * SECOND), -EBADMSG);
    assert_true(str_find(collect_reason(p.c, STR("network")), STR("titles")) > 0);
    probe_free(&p);
    tree_free(&t);
}

static void more_interfaces_than_series(void **state)
{
    (void)state;
    static char text[1 << 17];
    struct tree t;
    tree_make(&t);
    int size = snprintf(text, sizeof text, "%s", TITLES);
    for (int i = 0; i < 600; i++)
        size += snprintf(text + size, sizeof text - (size_t)size,
                         "veth%d: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n", i);
    tree_write(&t, "proc/net/dev", text);
    struct probe p = probe_make(t.root, 2, getuid());
    // 512 of 8 and the plain one are over 4096
    assert_int_equal(probe_sample(&p, "network", SECOND), 1 + 511 * 8);
    assert_true(str_find(collect_reason(p.c, STR("network")), STR("too many of tag 'interface'")) >=
                0);
    probe_free(&p);
    tree_free(&t);
}

static double disk(struct probe *p, const char *name, const char *device)
{
    return probe_tagged(p, "disk", name, device, NULL);
}

static void disks(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    static const char *const whole[] = {"loop0", "sda", "nvme0n1", "idle", "dm-0", "cciss!c0d0"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        char path[64];
        snprintf(path, sizeof path, "sys/block/%s/size", whole[i]);
        tree_write(&t, path, "1\n");
    }
    tree_write(&t, "proc/diskstats",
               "   7       0 loop0 5 0 10 0 0 0 0 0 0 5 5\n"
               "   8       0 sda 100 1 2048 250 50 2 4096 1500 3 750 1800 0 0 0 0 1 2\n"
               "   8       1 sda1 90 1 2000 250 50 2 4096 1500 0 750 1800\n"
               " 259       0 nvme0n1 7 0 8 1 9 0 10 2 0 3 3 4 5 6 7\n"
               " 259       1 nvme0n1p1 7 0 8 1 9 0 10 2 0 3 3\n"
               " 260       0 idle 0 0 0 0 0 0 0 0 0 0 0\n"
               " 253       0 dm-0 7 0 8 1 9 0 10 2 0 3 3\n"
               " 104       0 cciss/c0d0 1 0 2 0 0 0 0 0 0 0 0\n"
               "   3       1 hda1 1 2 3 4\n"
               " garbage\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "disk", SECOND), 1 + 3 * 8);
    assert_true(probe_value(&p, "disk", "disks") == 3);
    assert_true(disk(&p, "disk_reads_total", "sda") == 100);
    assert_true(disk(&p, "disk_read_bytes_total", "sda") == 2048 * 512);
    assert_true(disk(&p, "disk_read_seconds_total", "sda") == 0.25);
    assert_true(disk(&p, "disk_writes_total", "sda") == 50);
    assert_true(disk(&p, "disk_written_bytes_total", "sda") == 4096 * 512);
    assert_true(disk(&p, "disk_write_seconds_total", "sda") == 1.5);
    assert_true(disk(&p, "disk_in_flight", "sda") == 3);
    assert_true(disk(&p, "disk_busy_seconds_total", "sda") == 0.75);
    assert_true(disk(&p, "disk_reads_total", "cciss/c0d0") == 1);
    static const char *const left_out[] = {"loop0", "sda1", "nvme0n1p1", "idle", "dm-0", "hda1"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        assert_false(probe_has(&p, "disk", "disk_reads_total", left_out[i]));
    // One disk becomes active, one is unplugged.
    tree_write(&t, "proc/diskstats",
               "   8       0 sda 100 1 2048 250 50 2 4096 1500 3 750 1800\n"
               " 260       0 idle 1 0 8 0 0 0 0 0 0 0 0\n");
    assert_int_equal(probe_sample(&p, "disk", 2 * SECOND), 1 + 8);
    assert_int_equal(probe_sample(&p, "disk", 3 * SECOND), 1 + 2 * 8);
    assert_true(disk(&p, "disk_read_bytes_total", "idle") == 8 * 512);
    assert_true(store_is_missing(disk(&p, "disk_reads_total", "nvme0n1")));
    probe_free(&p);
    // Without /sys/block, disks cannot be distinguished from partitions.
    tree_remove_all(&t, "sys/block");
    p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "disk", SECOND), -ENXIO);
    assert_true(str_find(collect_reason(p.c, STR("disk")), STR("/sys/block: No such file")) > 0);
    probe_free(&p);
    tree_free(&t);
}

// ---- folders; the linker finds this program's statvfs first, which can hang ----

static atomic_bool one_hangs, all_are_slow;
static atomic_int asked; // calls of statvfs
static int gate[2];

int statvfs(const char *restrict path, struct statvfs *restrict about)
{
    char c;
    atomic_fetch_add(&asked, 1);
    if (atomic_load(&all_are_slow))
        usleep(50 * 1000);
    if (atomic_load(&one_hangs) && str_ends(str_of(path), STR("run")))
        assert_int_equal(read(gate[0], &c, 1), 1);
    if (str_ends(str_of(path), STR("gone"))) {
        errno = ESTALE;
        return -1;
    }
    *about = (struct statvfs){.f_bsize = 1 << 20,
                              .f_frsize = 4096,
                              .f_blocks = 1000,
                              .f_bfree = 400,
                              .f_bavail = 300,
                              .f_files = str_ends(str_of(path), STR("/tmp")) ? 0 : 50,
                              .f_favail = 20};
    return 0;
}

static struct collect *collect_folders_of(const char *folder, const char *sources)
{
    struct collect *c;
    struct error e;
    const struct collect_options options = {
        .root = "", .level = 2, .folder = folder, .sources = sources};
    assert_int_equal(collect_create(&options, &c, &e), 0);
    assert_int_equal(collect_set_count(c), 1);
    return c;
}

static struct collect *collect_folders(const char *folder)
{
    return collect_folders_of(folder, "filesystem");
}

static double folder(struct collect *c, const double *values, const char *name, const char *tag)
{
    struct collect_set set;
    collect_get_set(c, 0, &set);
    for (size_t i = 0; i < set.count; i++)
        if (str_eq(set.series[i].metric->metric.name, str_of(name)) &&
            set.series[i].label_count == 1 && str_eq(set.series[i].labels[0].value, str_of(tag)))
            return values[i];
    fail_msg("%s{%s} is not there", name, tag);
    return 0;
}

// Samples until `wanted` values are there: if the machine stands still, a folder answers too late
// for a sample.
static void sample_until(struct collect *c, int64_t t_ns, int wanted, double *values)
{
    while (collect_sample(c, 0, t_ns, values) != wanted)
        t_ns += 10 * SECOND;
}

static void folders(void **state)
{
    (void)state;
    double values[64];
    struct collect *c = collect_folders("/some/run");
    sample_until(c, SECOND, 1 + 5 + 3, values);
    assert_true(folder(c, values, "filesystem_size_bytes", "/some/run") == 4096000);
    assert_true(folder(c, values, "filesystem_free_bytes", "/some/run") == 300 * 4096);
    assert_true(folder(c, values, "filesystem_used_percent", "/some/run") == 100. * 600 / 900);
    assert_true(folder(c, values, "filesystem_inodes_free", "/some/run") == 20);
    // it has no fixed number
    assert_true(store_is_missing(folder(c, values, "filesystem_inodes", "/tmp")));
    struct collect_set set;
    collect_get_set(c, 0, &set);
    assert_int_equal(set.rate_ns, 5 * SECOND);
    collect_destroy(c);
    c = collect_folders("/some/gone");
    int64_t t_ns = SECOND;
    do {
        sample_until(c, t_ns, 1 + 3, values); // it has these also before that folder has answered
        t_ns += 1000 * SECOND;
    } while (str_find(collect_reason(c, STR("filesystem")), STR("has not answered")) >= 0);
    assert_str_equal(collect_reason(c, STR("filesystem")),
                     "cannot ask about /some/gone: Stale file handle");
    collect_destroy(c);
}

static void a_folder_that_hangs(void **state)
{
    (void)state;
    double values[64];
    assert_int_equal(pipe(gate), 0);
    atomic_store(&one_hangs, true);
    struct collect *c = collect_folders("/some/run");
    for (int i = 1; i <= 3; i++) {
        sample_until(c, 1000 * i * SECOND, 1 + 3, values);
        assert_true(folder(c, values, "filesystem_free_bytes", "/tmp") == 300 * 4096);
        assert_true(store_is_missing(folder(c, values, "filesystem_free_bytes", "/some/run")));
        assert_true(str_find(collect_reason(c, STR("filesystem")),
                             STR("/some/run has not answered for ")) == 0);
    }
    // It answers again, and its values return.
    atomic_store(&one_hangs, false);
    assert_int_equal(write(gate[1], "a", 1), 1);
    int64_t t_ns = 10000 * SECOND;
    do { // the first answer is late, which the reason says
        sample_until(c, t_ns, 1 + 5 + 3, values);
        assert_true(folder(c, values, "filesystem_free_bytes", "/some/run") == 300 * 4096);
        t_ns += 1000 * SECOND;
    } while (collect_reason(c, STR("filesystem")).size != 0);
    // Shutting down does not wait for a hanging folder.
    atomic_store(&one_hangs, true);
    sample_until(c, 1000000 * SECOND, 1 + 3, values);
    collect_destroy(c);
    assert_int_equal(write(gate[1], "a", 1), 1);
}

// A folder that never answers in time has values, and the other does not wait for it.
static void a_folder_that_is_slow(void **state)
{
    (void)state;
    double values[64];
    assert_int_equal(pipe(gate), 0);
    atomic_store(&one_hangs, true);
    struct collect *c = collect_folders("/some/run");
    sample_until(c, SECOND, 1 + 3, values);
    for (int i = 1; i <= 5; i++) {
        usleep(15 * 1000); // slow, which is the subject: more than half of the deadline
        assert_int_equal(write(gate[1], "a", 1), 1);
        sample_until(c, 1000 * i * SECOND, 1 + 5 + 3, values);
        assert_true(folder(c, values, "filesystem_free_bytes", "/some/run") == 300 * 4096);
        assert_int_equal(str_find(collect_reason(c, STR("filesystem")), STR("/some/run takes 0.")),
                         0);
    }
    collect_destroy(c);
    assert_int_equal(write(gate[1], "a", 1), 1);
}

// At a low rate, late values would be outdated at the next sample. So each folder is asked once,
// and its answer is taken when it comes.
static void slow_folders_at_a_low_rate(void **state)
{
    (void)state;
    double values[64];
    assert_int_equal(pipe(gate), 0);
    atomic_store(&all_are_slow, true);
    atomic_store(&one_hangs, true);
    struct collect *c = collect_folders_of("/some/run", "filesystem,filesystem=60");
    atomic_store(&asked, 0);
    assert_int_equal(collect_sample(c, 0, 60 * SECOND, values), -ETIMEDOUT);
    assert_true(collect_owes(c, 0));
    while (collect_sample_late(c, 0, 61 * SECOND, values) != 3)
        usleep(1000);
    assert_true(folder(c, values, "filesystem_free_bytes", "/tmp") == 300 * 4096);
    assert_true(collect_owes(c, 0)); // the other folder
    assert_int_equal(write(gate[1], "a", 1), 1);
    while (collect_sample_late(c, 0, 62 * SECOND, values) != 5)
        usleep(1000);
    assert_true(folder(c, values, "filesystem_free_bytes", "/some/run") == 300 * 4096);
    assert_true(store_is_missing(folder(c, values, "filesystem_free_bytes", "/tmp")));
    assert_false(collect_owes(c, 0));
    assert_int_equal(atomic_load(&asked), 2);
    collect_destroy(c);
    atomic_store(&all_are_slow, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interfaces),
        cmocka_unit_test(columns_of_interfaces),
        cmocka_unit_test(more_interfaces_than_series),
        cmocka_unit_test(disks),
        cmocka_unit_test(folders),
        cmocka_unit_test(a_folder_that_hangs),
        cmocka_unit_test(a_folder_that_is_slow),
        cmocka_unit_test(slow_folders_at_a_low_rate),
    };
    return cmocka_run_group_tests_name("collect/instances", tests, NULL, NULL);
}
