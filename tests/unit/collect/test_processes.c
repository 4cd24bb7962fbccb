// The source of processes: the processes of the user and of the job, and the cost of counting them.
#include "tree.h"
#include "unit/seed.h"
#include "unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;

static void write_process(struct tree *t, int pid, int ticks, int threads, int start, int pages)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text,
             "%d (a) b (c)) R 1 1 1 0 -1 0 0 0 0 0 %d 10 0 0 20 0 %d 0 %d 1000 %d "
             "18446744073709551615\n",
             pid, ticks - 10, threads, start, pages);
    tree_write(t, path, text);
}

static double own(struct probe *p, const char *name)
{
    return probe_value(p, "processes", name);
}

static void own_processes(void **state)
{
    (void)state;
    const double page = (double)sysconf(_SC_PAGESIZE);
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/self/stat", "not a number: not looked at");
    write_process(&t, 100, 500, 3, 1, 10);
    write_process(&t, 7, 250, 1, 2, 5);
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = SECOND;
    assert_int_equal(probe_sample(&p, "processes", t_ns), 4);
    assert_true(own(&p, "own_processes") == 2);
    assert_true(own(&p, "own_threads") == 4);
    assert_true(own(&p, "own_resident_bytes") == 15 * page);
    assert_true(own(&p, "own_cpu_seconds_total") == 7.5);
    assert_true(store_is_missing(own(&p, "job_processes"))); // no job
    // One continues, one ends, one starts.
    write_process(&t, 100, 600, 3, 1, 10);
    tree_remove_all(&t, "proc/7");
    write_process(&t, 8, 50, 1, 3, 5);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_processes") == 2);
    assert_true(own(&p, "own_cpu_seconds_total") == 7.5 + 1 + 0.5);
    // The same pid, but another process: all of its time is new, and nothing is subtracted.
    write_process(&t, 100, 20, 1, 9, 10);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    // A decreasing counter subtracts nothing either.
    write_process(&t, 8, 30, 1, 3, 5);
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    assert_true(own(&p, "own_cpu_seconds_total") == 9.2);
    // A process without readable details counts, but a sum over the others would not be the sum.
    static const char *const unreadable[] = {
        "9 (x R 1 2 3", "\n", "9 (x) R 1 1 1 0 -1 0 0 0 0 0 a b 0 0 20 0 c 0 1 1 1 1"};
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        tree_write(&t, "proc/9/stat", unreadable[i]);
        assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 1);
        assert_true(own(&p, "own_processes") == 3);
    }
    // A process that ends between the list and its file is not a gap.
    tree_remove(&t, "proc/9/stat");
    assert_int_equal(probe_sample(&p, "processes", t_ns += 100 * SECOND), 4);
    probe_free(&p);
    // Another user has no processes: that is a value, and it is 0.
    p = probe_make(t.root, 2, getuid() + 1);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 4);
    assert_true(own(&p, "own_processes") == 0);
    probe_free(&p);
    tree_free(&t);
}

static void write_environ(struct tree *t, int pid, const char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/proc/%d/environ", t->root, pid);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
}

static void processes_of_the_job(void **state)
{
    (void)state;
    static char large[100000];
    struct tree t;
    tree_make(&t);
    for (int pid = 10; pid < 18; pid++)
        write_process(&t, pid, 100 * (pid - 9), 2, 1, 10);
#define ENVIRON(pid, text) write_environ(&t, pid, text, sizeof text)
    ENVIRON(10, "SONDE_JOB=j1\0PATH=/bin");
    ENVIRON(11, "PATH=/bin\0SONDE_JOB=j1");
    ENVIRON(12, "SONDE_JOB=j12\0PATH=/bin");
    ENVIRON(13, "XSONDE_JOB=j1\0PATH=/bin");
    // Across the boundary of a read.
    static const char variable[] = "SONDE_JOB=j1";
    memset(large, 'x', sizeof large);
    memcpy(large + 16384 - 6, variable, sizeof variable);
    large[16384 - 7] = 0;
    write_environ(&t, 14, large, sizeof large);
    memset(large, 'x', sizeof large);
    memcpy(large + 16384, variable, sizeof variable);
    large[16383] = 'x';
    write_environ(&t, 15, large, sizeof large); // the end of another variable's value
    large[16383] = 0;
    write_environ(&t, 16, large, sizeof large);
    // 17 has none yet, because it has not called exec.
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    assert_int_equal(probe_sample(&p, "processes", SECOND), 8);
    assert_true(own(&p, "own_processes") == 8);
    assert_true(own(&p, "job_processes") == 4);
    assert_true(own(&p, "job_threads") == 8);
    assert_true(own(&p, "job_resident_bytes") == 40. * (double)sysconf(_SC_PAGESIZE));
    assert_true(own(&p, "job_cpu_seconds_total") == 1 + 2 + 5 + 7);
    ENVIRON(17, "SONDE_JOB=j1");
    assert_int_equal(probe_sample(&p, "processes", 100 * SECOND), 8);
    assert_true(own(&p, "job_processes") == 5);
    probe_free(&p);
    tree_free(&t);
}

static void write_io(struct tree *t, int pid, unsigned long read_bytes, unsigned long written)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/io", pid);
    snprintf(text, sizeof text,
             "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: %lu\nwrite_bytes: "
             "%lu\ncancelled_write_bytes: 9\n",
             read_bytes, written);
    tree_write(t, path, text);
}

// The name in the brackets of stat, as a tag.
static const char NAME_AS_TAG[] = "a__b__c_";

static double of_process(struct probe *p, const char *name, const char *pid)
{
    return probe_tagged(p, "processes", name, pid, NAME_AS_TAG);
}

// The default of `sonde run` is level 2: each process of the job has a point in every sample,
// however seldom the sums of all processes come.
static void processes_of_the_job_at_every_sample(void **state)
{
    (void)state;
    static const struct {
        const char *sources;
        int64_t step_ns;
    } cases[] = {{NULL, 2 * SECOND}, {"processes=0.1", SECOND / 10}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        enum { OTHERS = 400 }; // enough that the details of all are due only after many samples
        struct tree t;
        tree_make(&t);
        tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
        for (int pid = 1000; pid < 1000 + OTHERS; pid++)
            write_process(&t, pid, 100, 1, 1, 1);
        write_process(&t, 100, 100, 4, 1, 10);
        ENVIRON(100, "SONDE_JOB=j1");
        write_io(&t, 100, 4096, 8192);
        write_process(&t, 101, 50, 1, 1, 20); // /proc/101/io cannot be read
        ENVIRON(101, "SONDE_JOB=j1");
        struct probe p = probe_make_with(t.root, 2, getuid(), "j1", cases[k].sources);
        int64_t t_ns = 1000 * SECOND;
        for (int i = 0; i < 2; i++, t_ns += cases[k].step_ns) // found, then reported
            probe_sample(&p, "processes", t_ns);
        for (int i = 0; i < 20; i++, t_ns += cases[k].step_ns) {
            write_process(&t, 100, 200 + i, 4, 1, 10);
            write_io(&t, 100, 4096ul * (unsigned)i, 8192ul * (unsigned)i);
            if (i % 3 == 0) // other users' processes start and end, but a walk may not be due
                tree_write(&t, "proc/loadavg", i % 2 ? "0 0 0 1/93 7740\n" : "0 0 0 1/94 7741\n");
            assert_true(probe_sample(&p, "processes", t_ns) >= 8);
            assert_true(of_process(&p, "process_cpu_seconds_total", "100") == (200 + i) / 100.);
            assert_true(of_process(&p, "process_resident_bytes", "100") ==
                        10. * (double)sysconf(_SC_PAGESIZE));
            assert_true(of_process(&p, "process_threads", "100") == 4);
            assert_true(of_process(&p, "process_read_bytes_total", "100") == 4096. * i);
            assert_true(of_process(&p, "process_write_bytes_total", "100") == 8192. * i);
            assert_true(of_process(&p, "process_threads", "101") == 1);
            assert_true(store_is_missing(of_process(&p, "process_read_bytes_total", "101")));
            if (cases[k].sources) // requested explicitly: the sums of all are in every sample, too
                assert_true(own(&p, "own_threads") == OTHERS + 5 &&
                            own(&p, "own_processes") == OTHERS + 2);
        }
        probe_free(&p);
        tree_free(&t);
    }
}

// Time that was read between two walks counts once in the sums: a process counts from its last
// reading.
static void processor_time_is_counted_once(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 100, 100, 1, 1, 10);
    ENVIRON(100, "SONDE_JOB=j1");
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    for (int i = 0; i < 50; i++) {
        write_process(&t, 100, 100 + 10 * i, 1, 1, 10);
        probe_sample(&p, "processes", SECOND * (1 + 2 * i));
        double total = own(&p, "job_cpu_seconds_total");
        assert_true(store_is_missing(total) || total == (100 + 10 * i) / 100.);
        assert_true(store_is_missing(total) || own(&p, "own_cpu_seconds_total") == total);
    }
    probe_free(&p);
    tree_free(&t);
}

static void write_child(struct tree *t, int pid, int parent)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (x) S %d 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 1 1000 1 1\n", pid,
             parent);
    tree_write(t, path, text);
}

// A process of a made-up tree, and what the source can know of it.
struct made {
    int parent;                  // index; -1: init
    int ticks, waited;           // now
    int read_ticks, read_waited; // at the last sample
    int passed;                  // counted time of children that ended since
    int orphaned;                // the step
    bool lives, listed;
};

static void write_made(struct tree *t, int pid, const struct made *m)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (x) S %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 1000 1 1\n",
             pid, m->parent < 0 ? 1 : 100 + m->parent, m->ticks, m->waited, pid);
    tree_write(t, path, text);
}

static void remove_made(struct tree *t, int i)
{
    char path[32];
    snprintf(path, sizeof path, "proc/%d", 100 + i);
    tree_remove_all(t, path);
}

// Processes begin, work, end and are waited for at random. The source counts the time of each ended
// one in full if a process of the job has waited for it, else up to its last sample, and never
// twice.
static void ended_children_are_counted_once(void **state)
{
    (void)state;
    enum { MADE_MAX = 400 };
    const int steps = 300 * (int)test_rounds();
    static struct made all[MADE_MAX];
    uint64_t random = test_seed(2026);
    struct tree t;
    tree_make(&t);
    memset(all, 0, sizeof all);
    all[0] = (struct made){.parent = -1, .ticks = 5, .lives = true};
    write_made(&t, 100, &all[0]);
    ENVIRON(100, "SONDE_JOB=j1");
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    int count = 1, lost = 0, unseen = 0;
    for (int step = 1; step <= steps; step++) {
        for (int k = 0; k < 8; k++) {
            int i = (int)(test_random(&random) % (uint64_t)count);
            if (!all[i].lives)
                continue;
            switch (test_random(&random) % 3) {
            case 0:
                all[i].ticks += (int)(test_random(&random) % 50);
                break;
            case 1:
                if (count < MADE_MAX)
                    all[count++] = (struct made){.parent = i, .ticks = 1, .lives = true};
                break;
            default:
                // An orphan that ends in the same step looks like a child that was waited for.
                if (!i || all[i].orphaned == step)
                    break;
                struct made *m = &all[i];
                int counted = m->read_ticks + m->read_waited + m->passed;
                m->lives = false;
                if (m->parent < 0) {
                    lost += counted;
                } else {
                    all[m->parent].waited += m->ticks + m->waited;
                    all[m->parent].passed += counted;
                    unseen += !counted;
                }
                for (int c = 0; c < count; c++)
                    if (all[c].parent == i) {
                        all[c].parent = -1;
                        all[c].orphaned = step;
                    }
                // Half of the processes end between the walk that lists them and their reading.
                char path[32];
                snprintf(path, sizeof path, "proc/%d/stat", 100 + i);
                m->listed = m->read_ticks && test_random(&random) % 2;
                if (m->listed)
                    tree_write(&t, path, "");
                else if (m->read_ticks)
                    remove_made(&t, i);
            }
        }
        int expected = lost;
        for (int i = 0; i < count; i++)
            if (all[i].lives) {
                write_made(&t, 100 + i, &all[i]);
                ENVIRON(100 + i, "SONDE_JOB=j1");
                all[i].read_ticks = all[i].ticks;
                all[i].read_waited = all[i].waited;
                all[i].passed = 0;
                expected += all[i].ticks + all[i].waited;
            }
        probe_sample(&p, "processes", 100 * SECOND * step);
        double total = own(&p, "job_cpu_seconds_total") * 100;
        if (fabs(total - expected) > 0.01)
            fail_msg("step %d: %g ticks, not %d", step, total, expected);
        assert_true(own(&p, "own_cpu_seconds_total") * 100 == total);
        for (int i = 0; i < count; i++)
            if (all[i].listed) {
                remove_made(&t, i);
                all[i].listed = false;
            }
    }
    assert_true(unseen > 0 && lost > 0 && count > 50);
    probe_free(&p);
    tree_free(&t);
}

static void write_child_of(struct tree *t, int pid, int parent, int ticks, int waited)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (x) S %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 1000 1 1\n",
             pid, parent, ticks, waited, pid);
    tree_write(t, path, text);
}

// The command and its child work on after their last reading, and end. What the launcher tells
// completes the sum, whether the last walk has seen the command, an earlier one has, or none.
static void the_end_of_the_command_is_counted(void **state)
{
    (void)state;
    enum { NEVER_SEEN, SEEN, GONE, CASES };
    uint64_t random = test_seed(11);
    for (int i = 0; i < 30 * (int)test_rounds(); i++) {
        int launcher = (int)getppid(), which = i % CASES;
        int command = launcher + 1 == (int)getpid() ? launcher + 2 : launcher + 1;
        int own_ticks = 3 + (int)(test_random(&random) % 10),
            read = 1 + (int)(test_random(&random) % 200),
            waited = (int)(test_random(&random) % 100), more = (int)(test_random(&random) % 300),
            child_read = which == NEVER_SEEN ? 0 : 1 + (int)(test_random(&random) % 100),
            child = command + 1 == (int)getpid() ? command + 2 : command + 1;
        int all = read + waited + child_read + more;
        char path[32], child_path[32];
        struct tree t;
        tree_make(&t);
        write_child_of(&t, launcher, 1, own_ticks, 0);
        struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
        int64_t t_ns = 1000 * SECOND;
        if (which == NEVER_SEEN)
            probe_sample(&p, "processes", t_ns);
        write_child_of(&t, command, launcher, read, waited);
        ENVIRON(command, "SONDE_JOB=j1");
        if (which != NEVER_SEEN) {
            write_child_of(&t, child, command, child_read, 0);
            ENVIRON(child, "SONDE_JOB=j1");
            probe_sample(&p, "processes", t_ns);
            int counted = read + waited + child_read;
            assert_true(fabs(own(&p, "job_cpu_seconds_total") * 100 - counted) < 0.01);
            snprintf(child_path, sizeof child_path, "proc/%d/stat", child);
            tree_write(&t, child_path, ""); // it has ended; its file may be open
            snprintf(child_path, sizeof child_path, "proc/%d", child);
            tree_remove_all(&t, child_path);
        }
        snprintf(path, sizeof path, "proc/%d/stat", command);
        tree_write(&t, path, "");
        snprintf(path, sizeof path, "proc/%d", command);
        tree_remove_all(&t, path);
        write_child_of(&t, launcher, 1, own_ticks, all);
        if (which == GONE)
            probe_sample(&p, "processes", t_ns + 20 * SECOND);
        collect_ended(p.c, (uint64_t)command, all / 100.);
        probe_sample(&p, "processes", t_ns + 20 * SECOND + 1);
        double job = own(&p, "job_cpu_seconds_total") * 100,
               ours = own(&p, "own_cpu_seconds_total") * 100;
        if (fabs(job - all) > 0.01 || fabs(ours - all - own_ticks) > 0.01)
            fail_msg("case %d: %g and %g ticks, not %d and %d", which, job, ours, all,
                     all + own_ticks);
        assert_true(store_is_missing(own(&p, "job_resident_bytes")));
        probe_free(&p);
        tree_free(&t);
    }
}

// `env -i` and setuid programs have no readable environment: a child of the job's process belongs
// to the job.
static void children_of_the_job_are_of_the_job(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 100, 100, 1, 1, 10);
    ENVIRON(100, "SONDE_JOB=j1");
    write_child(&t, 101, 100);
    write_child(&t, 102, 101);
    write_child(&t, 90, 102); // pids have wrapped around: its parent is listed after it
    write_child(&t, 103, 7);
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    probe_sample(&p, "processes", SECOND);
    probe_sample(&p, "processes", 100 * SECOND);
    assert_true(own(&p, "own_processes") == 5 && own(&p, "job_processes") == 4);
    probe_free(&p);
    tree_free(&t);
}

// Threads of the kernel are processes of root, and belong to no job: their environment is not read.
static void threads_of_the_kernel(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/2/stat",
               "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 5 5 0 0 20 0 1 0 1 0 0 1\n");
    ENVIRON(2, "SONDE_JOB=j1");
    write_process(&t, 100, 100, 1, 1, 10);
    ENVIRON(100, "SONDE_JOB=j1");
    struct probe p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    probe_sample(&p, "processes", SECOND);
    assert_int_equal((int)own(&p, "own_processes"), 2);
    assert_int_equal((int)own(&p, "job_processes"), 1);
    assert_true(own(&p, "own_threads") == 2);
    probe_free(&p);
    tree_free(&t);
}

// If there are more processes than places, those with the most time and the most memory are
// selected; they keep their series to the end.
static void processes_one_by_one(void **state)
{
    (void)state;
    enum { MANY = 300, ROWS = 5 };
    struct tree t;
    tree_make(&t);
    for (int pid = 100; pid < 100 + MANY; pid++) {
        write_process(&t, pid, pid, 2, 1,
                      // ticks increase with the number; the last ten have much memory, too
                      pid < 390 ? 1 : pid);
        ENVIRON(pid, "SONDE_JOB=j1");
        write_io(&t, pid, 1, 2);
    }
    write_process(&t, 105, 105, 3, 1, 1000);       // a process with more memory than time
    write_process(&t, 500, 1000000, 1, 1, 100000); // not part of the job
    struct probe p = probe_make_with(t.root, 1, getuid(), "j1", NULL);
    assert_true(probe_sample(&p, "processes", SECOND) <= 0); // not below level 2
    probe_free(&p);
    p = probe_make_with(t.root, 2, getuid(), "j1", NULL);
    probe_sample(&p, "processes", 100 * SECOND);
    for (int pid = 390; pid < 400; pid++)
        write_process(&t, pid, pid + 100, 2, 1, pid);
    probe_sample(&p, "processes", 200 * SECOND);
    assert_int_equal(probe_sample(&p, "processes", 300 * SECOND),
                     // 390…399 use the most time; 105 and nine of these the most memory
                     8 + ROWS * 11);
    assert_true(of_process(&p, "process_threads", "105") == 3);
    assert_true(of_process(&p, "process_cpu_seconds_total", "399") == 4.99);
    assert_true(of_process(&p, "process_resident_bytes", "105") ==
                1000. * (double)sysconf(_SC_PAGESIZE));
    // Another one becomes busy; the previous ones stay. An ended one has no values any more.
    write_process(&t, 101, 100000, 2, 1, 1);
    tree_remove_all(&t, "proc/399");
    probe_sample(&p, "processes", 400 * SECOND);
    probe_sample(&p, "processes", 500 * SECOND);
    assert_true(of_process(&p, "process_cpu_seconds_total", "101") == 1000);
    assert_true(of_process(&p, "process_threads", "105") == 3);
    assert_true(store_is_missing(of_process(&p, "process_threads", "399")));
    // A zombie has processor time, but no memory value, not even 0.
    tree_write(&t, "proc/101/stat",
               "101 (a) b (c)) Z 1 1 1 0 -1 0 0 0 0 0 100001 10 0 0 20 0 1 0 1 0 0 "
               "18446744073709551615\n");
    probe_sample(&p, "processes", 550 * SECOND);
    assert_true(of_process(&p, "process_cpu_seconds_total", "101") == 1000.11);
    assert_true(store_is_missing(of_process(&p, "process_resident_bytes", "101")));
    // Another process with the same pid gets series of its own only when it is read twice.
    write_process(&t, 101, 5, 2, 77, 1);
    probe_sample(&p, "processes", 600 * SECOND);
    assert_true(store_is_missing(of_process(&p, "process_cpu_seconds_total", "101")));
    probe_free(&p);
    tree_free(&t);
}

// While no process starts or ends, the counts hold without a walk.
static void counts_hold_while_nothing_changes(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    write_process(&t, 7, 250, 1, 2, 5);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = 1000 * SECOND;
    assert_true(probe_sample(&p, "processes", t_ns) > 0);
    write_process(&t, 8, 250, 1, 2, 5); // not noticed: loadavg shows no new process
    assert_true(probe_sample(&p, "processes", t_ns += SECOND) > 0);
    assert_true(own(&p, "own_processes") == 1);
    tree_write(&t, "proc/loadavg", "0.99 0.12 0.04 2/93 7740\n"); // more of them run
    assert_true(probe_sample(&p, "processes", t_ns += SECOND / 2) > 0);
    assert_true(own(&p, "own_processes") == 1);
    static const char *const changes[] = {"0.41 0.12 0.04 1/92 7740\n",
                                          "0.41 0.12 0.04 1/92 7741\n", "garbage\n",
                                          "0.41 0.12 0.04 1-92 7741\n"};
    for (int i = 0; i < 4; i++) {
        tree_write(&t, "proc/loadavg", changes[i]);
        write_process(&t, 9 + i, 250, 1, 2, 5);
        assert_true(probe_sample(&p, "processes", t_ns += 11 * SECOND / 10) > 0);
        assert_true(own(&p, "own_processes") == 3 + i);
    }
    // A walk happens now and then nevertheless.
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/92 7741\n");
    assert_true(probe_sample(&p, "processes", t_ns += 3 * SECOND) > 0);
    write_process(&t, 20, 250, 1, 2, 5);
    assert_true(probe_sample(&p, "processes", t_ns += SECOND / 10) > 0);
    assert_true(own(&p, "own_processes") == 6);
    assert_true(probe_sample(&p, "processes", t_ns += 3 * SECOND) > 0);
    assert_true(own(&p, "own_processes") == 7);
    probe_free(&p);
    tree_free(&t);
}

static void a_name_with_brackets(void **state)
{
    (void)state;
    struct probe p = probe_make(TREES "/linux-6.18", 2, getuid());
    // The tree belongs to the user who checked it out.
    if (probe_sample(&p, "processes", SECOND) == 4 && own(&p, "own_processes") > 0) {
        assert_true(own(&p, "own_threads") == 12);
        assert_true(own(&p, "own_cpu_seconds_total") == 4.14); // with its ended children
    } else {
        skip();
    }
    probe_free(&p);
}

// The details of many processes come less often, their number in every sample; a clock that goes
// back does not stop them.
static void details_come_less_often(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7740\n");
    for (int pid = 1; pid <= 300; pid++)
        write_process(&t, pid, 100, 1, 1, 1);
    struct probe p = probe_make(t.root, 2, getuid());
    int64_t t_ns = 1000 * SECOND;
    assert_int_equal(probe_sample(&p, "processes", t_ns), 4);
    // A short job has values nevertheless.
    assert_int_equal(probe_sample(&p, "processes", t_ns + SECOND / 2), 4);
    // Opening and reading 300 files takes more than 100 us, so 1/10000 of a processor is reached
    // only after more than a second.
    assert_int_equal(probe_sample(&p, "processes", t_ns + SECOND * 8 / 10), 1);
    assert_true(own(&p, "own_processes") == 300);
    assert_true(store_is_missing(own(&p, "own_threads")));
    assert_int_equal(probe_sample(&p, "processes", t_ns + 11 * SECOND), 4);
    assert_int_equal(probe_sample(&p, "processes", t_ns - 500 * SECOND), 4);
    // A process started right after a walk over many: the count would be outdated, so it is
    // missing.
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7741\n");
    assert_true(probe_sample(&p, "processes", t_ns - 400 * SECOND) > 0);
    tree_write(&t, "proc/loadavg", "0.41 0.12 0.04 1/93 7742\n");
    assert_int_equal(probe_sample(&p, "processes", t_ns - 400 * SECOND + 1000), 0);
    assert_true(store_is_missing(own(&p, "own_processes")));
    probe_free(&p);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_processes),
        cmocka_unit_test(threads_of_the_kernel),
        cmocka_unit_test(a_name_with_brackets),
        cmocka_unit_test(processes_of_the_job),
        cmocka_unit_test(processes_of_the_job_at_every_sample),
        cmocka_unit_test(processor_time_is_counted_once),
        cmocka_unit_test(ended_children_are_counted_once),
        cmocka_unit_test(the_end_of_the_command_is_counted),
        cmocka_unit_test(children_of_the_job_are_of_the_job),
        cmocka_unit_test(processes_one_by_one),
        cmocka_unit_test(counts_hold_while_nothing_changes),
        cmocka_unit_test(details_come_less_often),
    };
    return cmocka_run_group_tests_name("collect/processes", tests, NULL, NULL);
}
