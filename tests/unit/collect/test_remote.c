// Lustre, NFS, interrupts; and a source with hanging files.
#include "tree.h"
#include "unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

// The linker finds this program's pread first, which can hang.
static atomic_int hanging_calls; // number of calls that will hang
static int gate[2];

ssize_t pread(int fd, void *buf, size_t count, off_t offset)
{
    char c;
    if (atomic_load(&hanging_calls) > 0 && atomic_fetch_sub(&hanging_calls, 1) > 0)
        assert_int_equal(read(gate[0], &c, 1), 1);
    return syscall(SYS_pread64, fd, buf, count, offset);
}

static const char SCRATCH[] = "proc/fs/lustre/llite/scratch-ffff8c1f/stats";

static void lustre(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, SCRATCH,
               "snapshot_time             1700000000.123456789 secs.nsecs\n"
               "read_bytes                12 samples [bytes] 4096 1048576 8392704\n"
               "write_bytes               3 samples [bytes]\n"
               "ioctl                     9 samples [regs]\n"
               "open                      34 samples [usecs] 1 2 3 4\n");
    tree_write(&t, "proc/fs/lustre/llite/scratch-ffff9999/stats",
               "read_bytes 1 samples [bytes] 2 3 18446744073709551615\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "lustre", SECOND), 6);
    assert_true(probe_tagged(&p, "lustre", "lustre_read_bytes_total", "scratch", NULL) == 8392704);
    assert_true(probe_tagged(&p, "lustre", "lustre_reads_total", "scratch", NULL) == 12);
    assert_true(probe_tagged(&p, "lustre", "lustre_writes_total", "scratch", NULL) == 3);
    assert_true(store_is_missing(
        probe_tagged(&p, "lustre", "lustre_written_bytes_total", "scratch", NULL)));
    assert_true(probe_tagged(&p, "lustre", "lustre_opens_total", "scratch", NULL) == 34);
    assert_true(probe_tagged(&p, "lustre", "lustre_read_bytes_total", "scratch-ffff9999", NULL) ==
                18446744073709551615.0);
    probe_free(&p);
    tree_remove_all(&t, "proc/fs");
    p = probe_make(t.root, 2, getuid());
    assert_str_equal(collect_reason(p.c, STR("lustre")), "no Lustre file system is mounted");
    probe_free(&p);
    // Files of newer clients.
    tree_write(&t, "sys/kernel/debug/lustre/llite/home-ff/stats", "close 5 samples [reqs]\n");
    p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "lustre", SECOND), 1);
    assert_true(probe_tagged(&p, "lustre", "lustre_closes_total", "home", NULL) == 5);
    probe_free(&p);
    tree_free(&t);
}

static void nfs(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/net/rpc/nfs", "net 0 0 0 0\nrpc 1234 5 1234\nproc4 2 1 2\n");
    tree_write(
        &t, "proc/self/mountstats",
        "device rootfs mounted on / with fstype rootfs\n"
        "device server:/home mounted on /home with fstype nfs4 statvers=1.1\n"
        "\topts:\trw,vers=4.2\n\tbytes:\t1 2 3 4 5 6 7 8\n"
        "device other:/x mounted on /data with fstype nfs statvers=1.1\n"
        "\tbytes:\t10 20 30 40 50\n"
        "device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n\tbytes:\t1 2 3 4 5 6 7 8\n");
    struct probe p = probe_make(t.root, 2, getuid());
    assert_int_equal(probe_sample(&p, "nfs", SECOND), 4);
    assert_true(probe_value(&p, "nfs", "nfs_calls_total") == 1234);
    assert_true(probe_value(&p, "nfs", "nfs_retransmissions_total") == 5);
    assert_true(probe_tagged(&p, "nfs", "nfs_read_bytes_total", "/home", NULL) == 5);
    assert_true(probe_tagged(&p, "nfs", "nfs_written_bytes_total", "/home", NULL) == 6);
    assert_true(store_is_missing(probe_tagged(&p, "nfs", "nfs_read_bytes_total", "/data", NULL)));
    assert_false(probe_has(&p, "nfs", "nfs_read_bytes_total", "/proc/fs/nfsd"));
    probe_free(&p);
    tree_remove(&t, "proc/net/rpc/nfs");
    p = probe_make(t.root, 2, getuid());
    assert_str_equal(collect_reason(p.c, STR("nfs")), "no NFS file system was ever mounted");
    probe_free(&p);
    tree_free(&t);
}

static void interrupts(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/interrupts",
               "           CPU0       CPU1       \n"
               " 24:          1          2  IO-APIC   5-edge      ACPI:Ged\n"
               " 28:          0          0 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config\n"
               "LOC:    1020304    2030405   Local timer interrupts\n"
               "ERR:          7\n"
               "garbage\n");
    struct probe p = probe_make(t.root, 4, getuid());
    assert_int_equal(probe_sample(&p, "interrupts", SECOND), 4);
    assert_true(probe_value(&p, "interrupts", "interrupt_lines") == 4);
    assert_true(probe_tagged(&p, "interrupts", "interrupt_count_total", "24", NULL) == 3);
    assert_true(probe_tagged(&p, "interrupts", "interrupt_count_total", "LOC", NULL) == 3050709);
    assert_true(probe_tagged(&p, "interrupts", "interrupt_count_total", "ERR", NULL) == 7);
    assert_false(probe_has(&p, "interrupts", "interrupt_count_total", "28"));
    probe_free(&p);
    p = probe_make(t.root, 3, getuid());
    assert_str_equal(collect_reason(p.c, STR("interrupts")), "needs a higher level than 3");
    probe_free(&p);
    tree_free(&t);
}

// Samples the source until it has its value: on a busy machine an answer is late.
static void sample_lustre(struct probe *p, int64_t *t_ns)
{
    while (probe_sample(p, "lustre", *t_ns += 2 * SECOND) != 1)
        usleep(100);
}

// A source in a thread of its own is cut off while it hangs; the others continue; it recovers by
// itself.
static void a_source_that_hangs(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    assert_int_equal(pipe(gate), 0);
    tree_write(&t, SCRATCH, "open 1 samples [regs]\n");
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    probe_deadline_ns = 0;
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = SECOND;
    sample_lustre(&p, &t_ns);
    atomic_store(&hanging_calls, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(probe_sample(&p, "lustre", t_ns += 2 * SECOND), -ETIMEDOUT);
        assert_true(
            store_is_missing(probe_tagged(&p, "lustre", "lustre_opens_total", "scratch", NULL)));
        assert_int_equal(
            str_find(collect_reason(p.c, STR("lustre")), STR("has not answered for 0.")), 0);
        assert_int_equal(probe_sample(&p, "load", t_ns), 5);
    }
    tree_write(&t, SCRATCH, "open 2 samples [regs]\n");
    assert_int_equal(write(gate[1], "a", 1), 1);
    // The first answer may be late, which the reason says.
    do {
        sample_lustre(&p, &t_ns);
        assert_true(probe_tagged(&p, "lustre", "lustre_opens_total", "scratch", NULL) == 2);
    } while (collect_reason(p.c, STR("lustre")).size != 0);
    // Shutting down does not wait for it, and its memory is freed when it returns.
    atomic_store(&hanging_calls, 1);
    assert_int_equal(probe_sample(&p, "lustre", t_ns += 2 * SECOND), -ETIMEDOUT);
    probe_free(&p);
    assert_int_equal(write(gate[1], "a", 1), 1);
    tree_free(&t);
}

// A source that never answers in time has the values of the sample before, and the others do not
// wait for it.
static void a_source_that_is_slow(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    assert_int_equal(pipe(gate), 0);
    tree_write(&t, SCRATCH, "open 1 samples [regs]\n");
    probe_deadline_ns = 0;
    struct probe p = probe_make(t.root, 2, getuid());
    atomic_store(&hanging_calls, 1000);
    int64_t t_ns = SECOND;
    assert_int_equal(probe_sample(&p, "lustre", t_ns), -ETIMEDOUT);
    for (int i = 2; i < 8; i++) {
        char text[64];
        snprintf(text, sizeof text, "open %d samples [regs]\n", i);
        tree_write(&t, SCRATCH, text);
        usleep(15 * 1000); // slow, which is the subject: more than half of the deadline
        assert_int_equal(write(gate[1], "a", 1), 1);
        sample_lustre(&p, &t_ns);
        assert_true(probe_tagged(&p, "lustre", "lustre_opens_total", "scratch", NULL) == i);
        assert_true(str_ends(collect_reason(p.c, STR("lustre")),
                             STR(" s to answer: its values are those of the sample before")));
    }
    atomic_store(&hanging_calls, 0);
    probe_free(&p);
    assert_int_equal(write(gate[1], "a", 1), 1);
    tree_free(&t);
}

// If the next sample is far away, a late answer is taken before it. No call begins meanwhile.
static void a_slow_source_that_is_sampled_seldom(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    assert_int_equal(pipe(gate), 0);
    tree_write(&t, SCRATCH, "open 1 samples [regs]\n");
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    probe_deadline_ns = 0;
    struct probe p = probe_make_with(t.root, 2, getuid(), NULL, "lustre=60,load");
    int64_t t_ns = SECOND;
    for (int i = 1; i < 4; i++, t_ns += 60 * SECOND) {
        atomic_store(&hanging_calls, 1);
        assert_int_equal(probe_sample(&p, "lustre", t_ns), -ETIMEDOUT);
        assert_true(probe_owes(&p, "lustre"));
        assert_false(probe_owes(&p, "load"));
        assert_int_equal(probe_sample_late(&p, "lustre", t_ns + 1), -ETIMEDOUT);
        assert_true(probe_owes(&p, "lustre"));
        usleep(15 * 1000); // slow, which is the subject: more than half of the deadline
        assert_int_equal(write(gate[1], "a", 1), 1);
        while (probe_sample_late(&p, "lustre", t_ns + 2) != 1)
            usleep(100);
        assert_true(probe_tagged(&p, "lustre", "lustre_opens_total", "scratch", NULL) == 1);
        assert_true(str_ends(collect_reason(p.c, STR("lustre")),
                             STR(" s to answer: its values come late")));
        assert_false(probe_owes(&p, "lustre"));
        assert_int_equal(probe_sample_late(&p, "lustre", t_ns + 3), 0);
        assert_false(probe_owes(&p, "lustre"));
    }
    sample_lustre(&p, &t_ns); // no call has begun ahead
    assert_int_equal(collect_reason(p.c, STR("lustre")).size, 0);
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lustre),
        cmocka_unit_test(nfs),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(a_source_that_hangs),
        cmocka_unit_test(a_source_that_is_slow),
        cmocka_unit_test(a_slow_source_that_is_sampled_seldom),
    };
    return cmocka_run_group_tests_name("collect/remote", tests, NULL, NULL);
}
