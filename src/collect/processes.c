// processes.c - the processes of this user and of this job: their number, threads, memory,
// processor time and I/O.
//
// Sampling has four steps, each only when necessary:
//
//   look     one read of /proc/loadavg: "0.41 0.12 0.04 1/93 7740" has the number of threads and
//            the last assigned pid. If both are as at the last walk, no process has begun or ended,
//            and the counts are still valid. (A process that ends while another begins in another
//            container could hide this, so a walk is made at least every WALK_MAX_NS.)
//   walk     getdents64 over /proc. A process is identified by its pid and the number of its
//            folder's inode, which is new for a new process: no file of a known one is touched.
//            A new one costs an fstatat (the owner of /proc/PID is the process's user). If it is
//            ours, its details are read, too, and its environment, for the job. Threads of the
//            kernel, which are root's, have none.
//   details  for each of our processes, one pread of /proc/PID/stat. Up to PROCESS_FILES_MAX of
//            these files are kept open; reading one fails when its process has ended, even if the
//            pid is in use again.
//   shown    the job's processes that have series of their own: a pread of /proc/PID/stat and one
//            of /proc/PID/io each, at every sample.
//
// The cost of walks and details grows with the number of processes. Both are measured, and at the
// source's own rate they take at most 1/WALK_SHARE and 1/DETAILS_SHARE of a processor, but run at
// least every PERIOD_MAX_NS. Outdated counts are missing. A rate set by the user is kept, and one
// line of the log reports the cost if it exceeds 1/COST_SHARE of a processor.
//
// process_choice.h chooses the shown processes. The source's reason reports when PROCESS_SHOWN_EVER
// is reached.
//
//   Cost: 256 × 2 preads of some 2 µs in 2 s are 0.05 % of a core; a job of 4 processes, 0.001 %
//
// The processor time is a counter: it adds the time that each process used since its last reading,
// so the end of a process does not decrease it. It also adds the time of ended children that no
// reading has seen (waited_children.h), and at the end of the job the time of its command since the
// last reading, which the launcher has waited for.
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "collect/process.h"
#include "collect/process_choice.h"
#include "collect/process_files.h"
#include "collect/procfile.h"
#include "collect/waited_children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    // more are not examined, and the counts are missing
    PROCESSES_MAX = 131072,
    LIST_SIZE = 32768,
    LOOK_AGAIN = 64, // walks after which the owner of a known process is checked again
    // walks in which the environment of a new process is read: it may not have called exec yet
    JOB_LOOKS = 3,
    WALK_SHARE = 20000,
    DETAILS_SHARE = 20000,
    COST_SHARE = 3333, // 0.03 % of a processor, the agent's budget
    COST_SAMPLES = 10, // samples over which the cost is measured
};
#define PERIOD_MAX_NS (INT64_C(10) * NS_PER_S)
#define WALK_MAX_NS (INT64_C(2) * NS_PER_S)

enum group { OWN, JOB, GROUPS };

static const struct {
    enum metric_symbol processes, threads, resident, cpu;
} group_rows[GROUPS] = {
    [OWN] = {METRIC_OWN_PROCESSES, METRIC_OWN_THREADS, METRIC_OWN_RESIDENT, METRIC_OWN_CPU},
    [JOB] = {METRIC_JOB_PROCESSES, METRIC_JOB_THREADS, METRIC_JOB_RESIDENT, METRIC_JOB_CPU},
};

struct processes {
    struct process_files files;
    struct procfile loadavg; // fd < 0: missing, so every sample walks
    double ticks_per_second, page_bytes;
    struct job_mark job; // "" = no job
    // ascending by pid; between two walks, `now` has the list before the last one
    struct process *last, *now;
    size_t last_count, last_capacity, now_capacity, before_count;
    size_t count[GROUPS]; // at the last walk
    uint64_t ticks_total[GROUPS];
    uint64_t walks, threads, last_pid; // of loadavg at the last walk
    uint32_t pass;                     // the number of readings of the list
    bool valid;                        // the last walk succeeded
    bool unsure;                       // a process of ours may still turn out to belong to the job
    // the process of the job that ended last as a child of the launcher, and its counted ticks
    uint64_t gone_pid, gone_ticks;
    bool ended; // the job's command has ended: this is the last sample
    int64_t first_ns;
    struct process_choice choice;
    int64_t cost_ns; // of the samples so far
    unsigned samples;
    int64_t walked_ns, walk_due_ns, details_due_ns;
    char list[LIST_SIZE] __attribute__((aligned(16)));
};

// This thread's processor time: waiting for others on a busy node is not a cost.
static int64_t cpu_time_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

// The pause after work that began at begun_ns and ends now: `share` times the processor time that
// it took, at most PERIOD_MAX_NS, and at most the age of the source, so that a short job has some
// values. If the user has set a rate, there is no pause.
static int64_t wait_after(const struct source *s, int64_t begun_ns, int share)
{
    const struct processes *p = s->state;
    if (s->rate_fixed)
        return 0;
    int64_t wait = (cpu_time_ns() - begun_ns) * share, age = s->instant_ns - p->first_ns;
    if (age >= 0 && wait > age) // negative: the clock stepped back
        wait = age;
    return wait < PERIOD_MAX_NS ? wait : PERIOD_MAX_NS;
}

// A due time far ahead was set before the clock stepped back.
static bool is_due(int64_t now_ns, int64_t due_ns)
{
    return now_ns >= due_ns || due_ns - now_ns > PERIOD_MAX_NS;
}

// ---- look ----

// Returns whether no process has begun or ended since the last walk. Keeps the values for the next
// comparison.
static bool is_unchanged(struct processes *p, struct source *s)
{
    struct str text, line;
    uint64_t runnable, threads, last_pid;
    if (p->loadavg.fd < 0 || procfile_read(&p->loadavg, s, &text) != 0 || !scan_line(&text, &line))
        return false;
    for (int i = 0; i < 3; i++)
        str_word(&line);
    if (!scan_u64(&line, &runnable) || str_cut(&line, '/').size || !scan_u64(&line, &threads) ||
        !scan_u64(&line, &last_pid))
        return false;
    bool same = threads == p->threads && last_pid == p->last_pid;
    p->threads = threads;
    p->last_pid = last_pid;
    return same;
}

// ---- walk ----

static bool parse_pid(const char *name, uint64_t *pid)
{
    struct str text = str_of(name);
    return text.size && text.data[0] != '0' && str_to_u64(text, pid);
}

static void close_files(struct processes *p, struct process *process)
{
    process_file_close(&p->files, &process->stat);
    process_file_close(&p->files, &process->io);
}

// The process as of the last walk, or NULL. *at: all earlier ones have smaller pids.
static struct process *find_known(struct processes *p, size_t *at, uint64_t pid)
{
    if (*at > 0 && p->last[*at - 1].pid >= pid)
        *at = 0; // a recorded tree may have any order
    while (*at < p->last_count && p->last[*at].pid < pid)
        ++*at;
    return *at < p->last_count && p->last[*at].pid == pid ? &p->last[*at] : NULL;
}

// Examines a process that is unknown, or was not examined lately. Returns false if it is gone.
static bool look_at(struct processes *p, const char *name, uid_t uid, struct process *process)
{
    struct stat about;
    if (fstatat(p->files.folder, name, &about, 0) != 0)
        return false;
    process->ours = about.st_uid == uid;
    return true;
}

static int read_stat(struct processes *p, struct process *process, struct process_stat *now);

// A child of a process of the job belongs to the job, even if its environment was cleared or is
// unreadable. `listed`: number of processes in this walk so far.
static bool is_child_of_job(const struct processes *p, uint64_t parent, size_t listed)
{
    for (size_t i = listed; i-- > 0;)
        if (p->now[i].pid == parent)
            return p->now[i].of_job;
    // a parent listed after its child is known from the last walk
    for (size_t i = 0; i < p->last_count; i++)
        if (p->last[i].pid == parent)
            return p->last[i].of_job;
    return false;
}

static void look_for_job(struct processes *p, struct process *process, size_t listed)
{
    if (!process->ours || process->of_job || !p->job.text[0] || process->job_looks >= JOB_LOOKS ||
        process->pid == (uint64_t)getpid()) // sonde itself does not belong to the job
        return;
    struct process_stat now;
    bool known = read_stat(p, process, &now) == 0;
    if (known && now.kernel) {
        process->job_looks = JOB_LOOKS;
        return;
    }
    process->job_looks++;
    process->of_job = job_process_has(p->files.folder, process->pid, &p->job) ||
                      (known && is_child_of_job(p, now.parent, listed));
    p->unsure |= !process->of_job && process->job_looks < JOB_LOOKS;
}

static int make_room(struct processes *p, size_t count)
{
    if (count > PROCESSES_MAX)
        return -E2BIG;
    return array_room(&p->now, &p->now_capacity, count, sizeof *p->now) ? 0 : -ENOMEM;
}

// Replaces the last walk's list by p->now[0..count).
static void take_over(struct processes *p, size_t count)
{
    bool ascending = true;
    for (size_t i = 1; i < count && ascending; i++)
        ascending = p->now[i - 1].pid < p->now[i].pid;
    if (!ascending) // only a recorded tree has another order
        qsort(p->now, count, sizeof *p->now, process_by_pid);
    waited_children_pass_on(p->last, p->last_count, p->now, count);
    for (size_t i = 0; i < p->last_count; i++) {
        const struct process *process = &p->last[i];
        if (!process->listed && process->of_job && process->parent == (uint64_t)getppid()) {
            p->gone_pid = process->pid;
            p->gone_ticks = waited_children_counted(process);
        }
    }
    for (size_t i = 0; i < p->last_count; i++)
        close_files(p, &p->last[i]); // of processes that are gone; the others' files were moved
    struct process *list = p->last;
    size_t capacity = p->last_capacity;
    p->last = p->now;
    p->last_capacity = p->now_capacity;
    p->before_count = p->last_count;
    p->last_count = count;
    p->now = list;
    p->now_capacity = capacity;
}

static int walk_list(struct source *s, struct processes *p, size_t *count)
{
    size_t at = 0;
    if (lseek(p->files.folder, 0, SEEK_SET) != 0)
        return -errno;
    for (;;) {
        // glibc has a function for it since 2.30
        ssize_t got = syscall(SYS_getdents64, p->files.folder, p->list, sizeof p->list);
        if (got <= 0)
            return got < 0 ? -errno : 0;
        for (ssize_t offset = 0; offset < got;) {
            const struct dirent64 *entry = (const void *)(p->list + offset);
            offset += entry->d_reclen;
            uint64_t pid;
            if (!parse_pid(entry->d_name, &pid))
                continue;
            int failed = make_room(p, *count + 1);
            if (failed)
                return failed;
            struct process *known = find_known(p, &at, pid), *process = &p->now[*count];
            bool same = known && known->inode == entry->d_ino;
            *process = (struct process){.pid = pid, .inode = entry->d_ino, .stat = -1, .io = -1};
            if (same) {
                *process = *known;
            } else if (
                // the kernel dropped the inode, or it is another process: the start time decides
                known) {
                process->start = known->start;
                process->parent = known->parent;
                process->ticks = known->ticks;
                process->waited = known->waited;
                process->inherited = known->inherited;
                process->credited = known->credited;
                process->used = known->used;
                process->shown = known->shown;
                process->reads = known->reads;
            }
            if ((!same || (p->walks + pid) % LOOK_AGAIN == 0) &&
                !look_at(p, entry->d_name, s->options->uid, process))
                continue;
            if (known)
                known->listed = true;
            if (same)
                known->stat = known->io = -1; // the descriptors were moved
            look_for_job(p, process, *count);
            ++*count;
        }
    }
}

static int walk(struct source *s)
{
    struct processes *p = s->state;
    size_t count = 0;
    int64_t begun = cpu_time_ns();
    p->unsure = false;
    p->before_count = 0; // this walk overwrites the list
    for (size_t i = 0; i < p->last_count; i++)
        p->last[i].listed = false;
    int failed = walk_list(s, p, &count);
    p->walks++;
    p->walked_ns = s->instant_ns;
    // The first walks read all environments, so their cost does not predict the next ones.
    p->walk_due_ns = s->instant_ns + (p->walks <= JOB_LOOKS ? 0 : wait_after(s, begun, WALK_SHARE));
    p->valid = failed == 0;
    for (size_t i = 0; failed && i < count; i++)
        close_files(p, &p->now[i]); // the last walk's list stays
    if (failed)
        return source_fail(s, failed, "cannot list /proc: %s", strerror(-failed));
    take_over(p, count);
    memset(p->count, 0, sizeof p->count);
    for (size_t i = 0; i < count; i++) {
        p->count[OWN] += p->last[i].ours;
        p->count[JOB] += p->last[i].ours && p->last[i].of_job;
    }
    p->choice.shown = 0;
    for (size_t i = 0; i < count; i++)
        p->choice.shown += p->last[i].shown;
    return 0;
}

// ---- details ----

// Returns 0, or a negative errno: -ESRCH or -ENOENT if the process is gone.
static int read_stat(struct processes *p, struct process *process, struct process_stat *now)
{
    char text[PROCESS_STAT_SIZE];
    ssize_t got =
        process_file_read(&p->files, process->pid, &process->stat, "stat", text, sizeof text);
    if (got < 0)
        return (int)got;
    struct str line = {text, (size_t)got};
    if (!process_stat_parse(line, now)) {
        process_file_close(&p->files, &process->stat);
        return -EBADMSG;
    }
    if (process->of_job)
        job_process_command(line, process->command);
    return 0;
}

static void count_ticks(struct processes *p, const struct process *process, uint64_t more)
{
    for (int group = OWN; group <= (process->of_job ? JOB : OWN); group++)
        p->ticks_total[group] += more;
}

// Adds the processor time of the process since its last reading to the sums. That of its children
// is added by count_waited(), after all readings of a pass. Returns 0, or the error of read_stat.
static int read_process(struct processes *p, struct process *process)
{
    struct process_stat now;
    int failed = read_stat(p, process, &now);
    process->pass = p->pass;
    process->gone = failed == -ESRCH || failed == -ENOENT;
    if (failed) {
        process->shown = false;
        return failed;
    }
    bool same = process->start == now.start;
    uint64_t ticks = now.ticks, before = same ? process->ticks : 0;
    if (!same)
        process->inherited = process->credited = 0;
    count_ticks(p, process, ticks > before ? ticks - before : 0);
    process->waited = now.waited;
    process->reads = !same                        ? 1
                     : process->reads < UINT8_MAX ? (uint8_t)(process->reads + 1)
                                                  : process->reads;
    process->shown = process->shown && same && process->of_job;
    process->used = (same ? process->used : 0) + (ticks > before ? ticks - before : 0);
    process->zombie = now.state == 'Z' || now.state == 'X';
    process->pages = now.pages;
    process->threads = now.threads;
    process->start = now.start;
    process->parent = now.parent;
    process->ticks = ticks;
    return 0;
}

// Adds the processor time of ended children that no reading has seen. A parent's waited time also
// has what a reading of the child has counted, so the counted time is passed on first.
static void count_waited(struct processes *p)
{
    if (!waited_children_have_ended(p->last, p->last_count))
        return;
    p->pass++;
    for (size_t i = 0; i < p->last_count; i++)
        if (waited_children_probe(p->last, p->last_count, &p->last[i]))
            read_process(p, &p->last[i]);
    waited_children_pass_on_gone(p->last, p->last_count, p->now, p->before_count);
    for (size_t i = 0; i < p->last_count; i++)
        if (p->last[i].ours && !p->last[i].gone)
            count_ticks(p, &p->last[i], waited_children_count(&p->last[i]));
}

static void read_io(struct processes *p, struct process *process)
{
    char text[PROCESS_IO_SIZE];
    ssize_t got = process_file_read(&p->files, process->pid, &process->io, "io", text, sizeof text);
    process->io_known = process_io_parse((struct str){text, got > 0 ? (size_t)got : 0},
                                         &process->read_bytes, &process->write_bytes);
}

// ---- one by one ----

static void put_process(struct source *s, double *values, const struct process *process)
{
    const struct processes *p = s->state;
    char pid[24];
    snprintf(pid, sizeof pid, "%" PRIu64, process->pid);
    ptrdiff_t instance = source_instance(s, str_of(pid), str_of(process->command));
    if (instance < 0)
        return;
    source_put_at(s, values, instance, METRIC_PROCESS_CPU,
                  (double)process->ticks / p->ticks_per_second);
    if (process->zombie)
        return;
    source_put_at(s, values, instance, METRIC_PROCESS_RESIDENT,
                  (double)process->pages * p->page_bytes);
    source_put_at(s, values, instance, METRIC_PROCESS_THREADS, (double)process->threads);
    if (process->io_known) {
        source_put_at(s, values, instance, METRIC_PROCESS_READ, (double)process->read_bytes);
        source_put_at(s, values, instance, METRIC_PROCESS_WRITE, (double)process->write_bytes);
    }
}

static void put_shown(struct source *s, double *values)
{
    struct processes *p = s->state;
    p->choice.shown = 0;
    for (size_t i = 0; i < p->last_count; i++) {
        struct process *process = &p->last[i];
        if (!process->shown)
            continue;
        p->choice.shown++;
        read_io(p, process);
        put_process(s, values, process);
    }
    source_forget_unseen(s);
    if (p->choice.ever == PROCESS_SHOWN_EVER)
        source_fail(s, 0, "%d processes have had series of their own: new ones get none",
                    PROCESS_SHOWN_EVER);
}

// ---- all of them ----

// Reads the details of all own processes, and puts the sums.
static void put_details(struct source *s, double *values)
{
    struct processes *p = s->state;
    struct {
        size_t read, gone;
        uint64_t threads, pages;
    } sums[GROUPS] = {0};
    int64_t begun = cpu_time_ns();
    p->pass++;
    for (size_t i = 0; i < p->last_count; i++) {
        struct process *process = &p->last[i];
        if (!process->ours)
            continue;
        int failed = read_process(p, process);
        for (int group = OWN; group <= (process->of_job ? JOB : OWN); group++) {
            sums[group].gone += process->gone;
            sums[group].read += !failed;
            sums[group].threads += failed ? 0 : process->threads;
            sums[group].pages += failed ? 0 : process->pages;
        }
    }
    count_waited(p);
    for (int group = OWN; group <= (p->job.text[0] ? JOB : OWN); group++) {
        if (sums[group].read + sums[group].gone < p->count[group])
            continue; // an incomplete sum is missing
        // After the end of the job, the memory of no process is no value.
        if (sums[group].read || !p->ended) {
            source_put(s, values, group_rows[group].threads, (double)sums[group].threads);
            source_put(s, values, group_rows[group].resident,
                       (double)sums[group].pages * p->page_bytes);
        }
        source_put(s, values, group_rows[group].cpu,
                   (double)p->ticks_total[group] / p->ticks_per_second);
    }
    p->details_due_ns = s->instant_ns + wait_after(s, begun, DETAILS_SHARE);
}

// Reads the job's processes that are shown, or will be after one more reading.
static void read_shown(struct processes *p)
{
    p->pass++;
    for (size_t i = 0; i < p->last_count; i++) {
        struct process *process = &p->last[i];
        if (process->shown || (process->of_job && process->ours && process->reads < 2 &&
                               p->count[JOB] <= PROCESS_SHOWN_MAX))
            read_process(p, process);
    }
    count_waited(p);
}

static void put_each(struct source *s, double *values, bool details)
{
    struct processes *p = s->state;
    if (!details)
        read_shown(p);
    if (details || p->count[JOB] <= PROCESS_SHOWN_MAX)
        process_choice_make(&p->choice, p->last, p->last_count, p->count[JOB]);
    put_shown(s, values);
}

// Keeps the user's rate, and logs its cost once.
static void say_cost(struct source *s, int64_t cost_ns)
{
    struct processes *p = s->state;
    p->cost_ns += cost_ns;
    if (++p->samples != COST_SAMPLES)
        return;
    double share = (double)p->cost_ns / COST_SAMPLES / (double)s->rate_ns;
    if (share * COST_SHARE > 1)
        log_warning("reading the processes every %g s, as --collect asks, takes %.2f %% of a core "
                    "on this node",
                    (double)s->rate_ns / NS_PER_S, 100 * share);
}

static int processes_sample(struct source *s, double *values)
{
    struct processes *p = s->state;
    int64_t now = s->instant_ns, begun = s->rate_fixed ? cpu_time_ns() : 0;
    bool unchanged = is_unchanged(p, s) && p->valid && !p->unsure && now >= p->walked_ns &&
                     now < p->walked_ns + WALK_MAX_NS;
    bool walks = !unchanged && (p->ended || is_due(now, p->walk_due_ns));
    p->first_ns = p->first_ns ? p->first_ns : now;
    s->reason[0] = 0; // without /proc/loadavg every sample walks
    int failed = walks ? walk(s) : 0;
    if (failed)
        return failed;
    if (!unchanged && !walks)
        p->valid = false; // until the next walk
    for (int group = OWN; p->valid && group <= (p->job.text[0] ? JOB : OWN); group++)
        source_put(s, values, group_rows[group].processes, (double)p->count[group]);
    bool details = p->valid && (p->ended || is_due(now, p->details_due_ns));
    if (details)
        put_details(s, values);
    if (s->tagged_rows && p->job.text[0])
        put_each(s, values, details);
    if (s->rate_fixed)
        say_cost(s, cpu_time_ns() - begun);
    return 0;
}

// Counts the time of the command since its last reading. If a reading has found that the command
// has ended, or none has seen it, only the job's sum lacks its time: the launcher, which has waited
// for it, is one of our own processes.
static void processes_ended(struct source *s, uint64_t pid, double seconds)
{
    struct processes *p = s->state;
    uint64_t all = (uint64_t)llround(seconds * p->ticks_per_second);
    struct process *process = waited_children_find(p->last, p->last_count, pid);
    bool counts = process && process->ours && process->start;
    if (counts && !process->passed_on) { // what readings of its ended children have counted
        p->pass++;
        for (size_t i = 0; i < p->last_count; i++)
            if (p->last[i].ours && &p->last[i] != process)
                read_process(p, &p->last[i]);
        waited_children_pass_on_gone(p->last, p->last_count, p->now, p->before_count);
    }
    uint64_t counted = counts               ? waited_children_counted(process)
                       : pid == p->gone_pid ? p->gone_ticks
                                            : 0;
    uint64_t more = all > counted ? all - counted : 0;
    p->ended = true;
    p->ticks_total[JOB] += more;
    if (!counts || process->passed_on)
        return;
    p->ticks_total[OWN] += more;
    process->credited += more;
}

static void processes_close(struct source *s)
{
    struct processes *p = s->state;
    for (size_t i = 0; i < p->last_count; i++)
        close_files(p, &p->last[i]);
    procfile_close(&p->loadavg);
    close(p->files.folder);
    free(p->last);
    free(p->now);
    free(p);
}

static int processes_open(struct source *s)
{
    int folder = procfile_folder(s, "/proc");
    if (folder < 0)
        return folder;
    struct processes *p = calloc(1, sizeof *p);
    if (!p) {
        close(folder);
        return source_fail(s, -ENOMEM, "no memory");
    }
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    p->files.folder = folder;
    p->ticks_per_second = ticks > 0 ? (double)ticks : 100;
    p->page_bytes = page > 0 ? (double)page : 4096;
    job_mark_set(&p->job, s->options->job);
    procfile_open(&p->loadavg, s, "/proc/loadavg");
    s->state = p;
    return 0;
}

const struct source_kind source_processes = {
    .name = {"processes", 9},
    .rate_s = 2,
    .open = processes_open,
    .sample = processes_sample,
    .close = processes_close,
    .ended = processes_ended,
    .keys = {"pid", "command"},
    .tagged_from = METRIC_PROCESS_CPU,
    .tagged_to = METRIC_PROCESS_WRITE,
};
