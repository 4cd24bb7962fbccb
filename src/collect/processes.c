// processes.c - the processes of this user and of this job: how many, their threads, memory and processor time.
//
// Three steps, each only when it is needed:
//
//   look    one read of /proc/loadavg: "0.41 0.12 0.04 1/93 7740" holds the number of threads and the last process number given out. When both
//           are as at the last walk nobody has come or gone, and the counts still hold. (One that ends here while another begins in another
//           container could hide behind each other: a walk is made every WALK_MAX_NS all the same.)
//   walk    getdents64 over /proc. A process is known by its number and the number of its folder's inode, which the kernel makes anew for a new
//           process: no file of a known one is touched. A new one costs an fstatat (the owner of /proc/PID is the process's user) and, when
//           it is ours, a look into its environment for the job.
//   details for each of ours, one pread of /proc/PID/stat. That file is kept open, up to FILES_MAX of them; reading it fails when the process has
//           ended, even if its number has come back.
//
// Walks and details cost time in proportion to what runs; both are measured, and are so seldom that they take at most 1/WALK_SHARE and
// 1/DETAILS_SHARE of a processor (at least every PERIOD_MAX_NS). Where counts would be out of date they are missing.
//
// At level 4 the job's processes that used most processor time since the last details, and those with most memory, SHOWN_EACH of both, get series of
// their own, which they keep until they end; at most SHOWN_MAX at a time and SHOWN_EVER in all.
//
// The processor time is a counter: what a process used since the last details is added, so a process that ends takes nothing away.
#include "base/clock.h"
#include "collect/procfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 131072, // that are told apart; more are not looked at, and the counts are missing
    PROCESSES_FIRST = 256,
    LIST_SIZE = 32768,
    STAT_SIZE = 1024, // a line of /proc/PID/stat is at most about 400 bytes
    ENVIRON_CHUNK = 16384,
    ENVIRON_MAX = 1 << 20,
    FILES_MAX = 256, // kept open
    LOOK_AGAIN = 64, // walks after which the owner of a known process is looked at again
    JOB_LOOKS = 3,   // walks in which the environment of a new process is read: it may not have called exec yet
    WALK_SHARE = 20000,
    DETAILS_SHARE = 20000,
    SHOWN_EACH = 10,
    SHOWN_MAX = 64,
    SHOWN_EVER = 1024,
    COMMAND_SIZE = 17, // the kernel keeps 15 bytes; kernel threads may have 16
};
#define PERIOD_MAX_NS (INT64_C(10) * NS_PER_S)
#define WALK_MAX_NS (INT64_C(2) * NS_PER_S)

static const char JOB_VARIABLE[] = "SONDE_JOB=";

// Numbers behind the closing bracket of /proc/PID/stat, counted from the state letter as 0.
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_THREADS = 17, STAT_START = 19, STAT_RSS = 21, STAT_NEEDED = 22 };

struct process {
    uint64_t pid, inode;
    uint64_t start, ticks;         // start distinguishes two processes that had the same number; 0 = no details yet
    int stat;                      // its /proc/PID/stat; -1 = not kept open
    uint64_t used, pages, threads; // used: ticks between the last two details
    char command[COMMAND_SIZE];
    bool ours, of_job, shown, picked;
    uint8_t job_looks;
};

enum group { OWN, JOB, GROUPS };

static const struct {
    enum metric_symbol processes, threads, resident, cpu;
} group_rows[GROUPS] = {
    [OWN] = {METRIC_OWN_PROCESSES, METRIC_OWN_THREADS, METRIC_OWN_RESIDENT, METRIC_OWN_CPU},
    [JOB] = {METRIC_JOB_PROCESSES, METRIC_JOB_THREADS, METRIC_JOB_RESIDENT, METRIC_JOB_CPU},
};

struct processes {
    int folder;
    struct procfile loadavg; // fd < 0: not there, so every sample walks
    double ticks_per_second, page_bytes;
    char job[256];              // "SONDE_JOB=…" with its NUL; "" = there is none
    struct process *last, *now; // ascending by pid
    size_t last_count, capacity, files;
    size_t count[GROUPS]; // at the last walk
    uint64_t ticks_total[GROUPS];
    uint64_t walks, threads, last_pid; // of loadavg at the last walk
    bool valid;                        // the last walk went through
    bool unsure;                       // a process of ours may be of the job yet
    size_t shown_ever;
    int64_t walked_ns, walk_due_ns, details_due_ns;
    char list[LIST_SIZE] __attribute__((aligned(16)));
    char environ[ENVIRON_CHUNK];
};

// This thread's: what it waits for others on a busy node costs nobody anything.
static int64_t cpu_time_ns(void)
{
    return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

// How long to leave it alone after what was begun then and is done now.
static int64_t wait_after(int64_t begun_ns, int share)
{
    int64_t wait = (cpu_time_ns() - begun_ns) * share;
    return wait < PERIOD_MAX_NS ? wait : PERIOD_MAX_NS;
}

// An instant far ahead was set before the clock stepped back.
static bool is_due(int64_t now_ns, int64_t due_ns)
{
    return now_ns >= due_ns || due_ns - now_ns > PERIOD_MAX_NS;
}

// ---- look ----

// Whether nobody came or went since the last walk; takes down what the next look compares with.
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

static void close_stat(struct processes *p, struct process *process)
{
    if (process->stat < 0)
        return;
    close(process->stat);
    process->stat = -1;
    p->files--;
}

// The process as it was at the last walk, or NULL. *at: all before have smaller numbers.
static struct process *find_known(struct processes *p, size_t *at, uint64_t pid)
{
    if (*at > 0 && p->last[*at - 1].pid >= pid)
        *at = 0; // a recorded tree comes in any order
    while (*at < p->last_count && p->last[*at].pid < pid)
        ++*at;
    return *at < p->last_count && p->last[*at].pid == pid ? &p->last[*at] : NULL;
}

// Whether "SONDE_JOB=id" stands in what the process was started with.
static bool is_of_job(struct processes *p, uint64_t pid)
{
    char path[32];
    size_t wanted = strlen(p->job) + 1, kept = 0; // with the NUL behind it
    bool found = false;
    snprintf(path, sizeof path, "%" PRIu64 "/environ", pid);
    int fd = openat(p->folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (off_t offset = 0; offset < ENVIRON_MAX && !found;) {
        ssize_t got = pread(fd, p->environ + kept, sizeof p->environ - kept, offset);
        if (got <= 0)
            break;
        size_t size = kept + (size_t)got;
        const char *hit = memmem(p->environ, size, p->job, wanted);
        found = hit && ((hit == p->environ && offset == 0) || (hit > p->environ && hit[-1] == 0));
        offset += got;
        kept = size < wanted ? size : wanted; // one byte more than could be its beginning: what stands in front of it
        memmove(p->environ, p->environ + size - kept, kept);
    }
    close(fd);
    return found;
}

// Looks at a process that is not known, or not lately. False: it is gone.
static bool look_at(struct processes *p, const char *name, uid_t uid, struct process *process)
{
    struct stat about;
    if (fstatat(p->folder, name, &about, 0) != 0)
        return false;
    process->ours = about.st_uid == uid;
    return true;
}

static void look_for_job(struct processes *p, struct process *process)
{
    if (!process->ours || process->of_job || !p->job[0] || process->job_looks >= JOB_LOOKS)
        return;
    process->job_looks++;
    process->of_job = is_of_job(p, process->pid) && process->pid != (uint64_t)getpid(); // sonde is not the job
    p->unsure |= !process->of_job && process->job_looks < JOB_LOOKS;
}

static int make_room(struct processes *p)
{
    if (p->capacity >= PROCESSES_MAX)
        return -E2BIG;
    struct process *last = realloc(p->last, 2 * p->capacity * sizeof *last);
    if (!last)
        return -ENOMEM;
    p->last = last;
    struct process *now = realloc(p->now, 2 * p->capacity * sizeof *now);
    if (!now)
        return -ENOMEM;
    p->now = now;
    p->capacity *= 2;
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

// Puts p->now[0..count) in the place of the last walk's.
static void take_over(struct processes *p, size_t count)
{
    bool ascending = true;
    for (size_t i = 1; i < count && ascending; i++)
        ascending = p->now[i - 1].pid < p->now[i].pid;
    if (!ascending) // only a recorded tree comes in another order
        qsort(p->now, count, sizeof *p->now, by_pid);
    for (size_t i = 0; i < p->last_count; i++)
        close_stat(p, &p->last[i]); // of those that are gone; the others' have moved on
    struct process *swap = p->last;
    p->last = p->now;
    p->now = swap;
    p->last_count = count;
}

static int walk_list(struct source *s, struct processes *p, size_t *count)
{
    size_t at = 0;
    if (lseek(p->folder, 0, SEEK_SET) != 0)
        return -errno;
    for (;;) {
        ssize_t got = getdents64(p->folder, p->list, sizeof p->list);
        if (got <= 0)
            return got < 0 ? -errno : 0;
        for (ssize_t offset = 0; offset < got;) {
            const struct dirent64 *entry = (const void *)(p->list + offset);
            offset += entry->d_reclen;
            uint64_t pid;
            if (!parse_pid(entry->d_name, &pid))
                continue;
            int failed = *count == p->capacity ? make_room(p) : 0;
            if (failed)
                return failed;
            struct process *known = find_known(p, &at, pid), *process = &p->now[*count];
            bool same = known && known->inode == entry->d_ino;
            *process = (struct process){.pid = pid, .inode = entry->d_ino, .stat = -1};
            if (same) {
                *process = *known;
            } else if (known) { // the kernel forgot the inode, or it is another process: the start will tell
                process->start = known->start;
                process->ticks = known->ticks;
            }
            if ((!same || (p->walks + pid) % LOOK_AGAIN == 0) && !look_at(p, entry->d_name, s->options->uid, process))
                continue;
            if (same)
                known->stat = -1; // it has moved on
            look_for_job(p, process);
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
    int failed = walk_list(s, p, &count);
    p->walks++;
    p->walked_ns = s->instant_ns;
    // The first walks, which look at all environments, are no measure of the next ones.
    p->walk_due_ns = s->instant_ns + (p->walks <= JOB_LOOKS ? 0 : wait_after(begun, WALK_SHARE));
    p->valid = failed == 0;
    for (size_t i = 0; failed && i < count; i++)
        close_stat(p, &p->now[i]); // the last walk's list stays
    if (failed)
        return source_fail(s, failed, "cannot list /proc: %s", strerror(-failed));
    take_over(p, count);
    memset(p->count, 0, sizeof p->count);
    for (size_t i = 0; i < count; i++) {
        p->count[OWN] += p->last[i].ours;
        p->count[JOB] += p->last[i].ours && p->last[i].of_job;
    }
    return 0;
}

// ---- details ----

// The line's numbers; the name in brackets may hold anything, brackets and blanks too, so what follows begins behind the last one.
static bool parse_stat(struct str line, uint64_t numbers[STAT_NEEDED])
{
    const char *bracket = line.size ? memrchr(line.data, ')', line.size) : NULL;
    if (!bracket)
        return false;
    struct str rest = str_slice(line, (size_t)(bracket - line.data) + 1, line.size);
    for (int i = 0; i < STAT_NEEDED; i++) {
        struct str word = str_word(&rest);
        numbers[i] = 0;
        bool needed = i == STAT_UTIME || i == STAT_STIME || i == STAT_THREADS || i == STAT_START || i == STAT_RSS;
        if (needed && !str_to_u64(word, &numbers[i]))
            return false;
    }
    return true;
}

// What stands in the brackets; bytes that would look strange in a tag become '_'.
static void take_command(struct process *process, struct str line)
{
    const char *open = line.size ? memchr(line.data, '(', line.size) : NULL,
               *close = line.size ? memrchr(line.data, ')', line.size) : NULL;
    size_t size = open && close > open ? (size_t)(close - open - 1) : 0;
    if (size >= COMMAND_SIZE)
        size = COMMAND_SIZE - 1;
    for (size_t i = 0; i < size; i++) {
        char c = open[1 + i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || memchr("_.:/-+", c, 6);
        process->command[i] = plain ? c : '_';
    }
    process->command[size] = 0;
}

// 0, or a negative errno: -ESRCH or -ENOENT when it is gone.
static int read_stat(struct processes *p, struct process *process, uint64_t numbers[STAT_NEEDED])
{
    char text[STAT_SIZE], path[32];
    int stat = process->stat;
    if (stat < 0) {
        snprintf(path, sizeof path, "%" PRIu64 "/stat", process->pid);
        stat = openat(p->folder, path, O_RDONLY | O_CLOEXEC);
        if (stat < 0)
            return -errno;
    }
    ssize_t got = pread(stat, text, sizeof text, 0);
    int failed = got < 0 ? -errno : parse_stat((struct str){text, (size_t)got}, numbers) ? 0 : -EBADMSG;
    if (!failed && process->of_job)
        take_command(process, (struct str){text, (size_t)got});
    if (process->stat < 0) {
        bool keep = failed == 0 && p->files < FILES_MAX;
        if (!keep)
            close(stat);
        process->stat = keep ? stat : -1;
        p->files += keep;
    }
    return failed;
}

struct sums {
    size_t read, gone;
    uint64_t threads, pages;
};

static void add_process(struct processes *p, struct process *process, struct sums sums[GROUPS])
{
    uint64_t numbers[STAT_NEEDED];
    int failed = read_stat(p, process, numbers);
    for (int group = OWN; group <= (process->of_job ? JOB : OWN); group++) {
        struct sums *sum = &sums[group];
        sum->gone += failed == -ESRCH || failed == -ENOENT;
        if (failed)
            continue;
        uint64_t ticks = numbers[STAT_UTIME] + numbers[STAT_STIME];
        uint64_t before = process->start == numbers[STAT_START] ? process->ticks : 0;
        sum->read++;
        sum->threads += numbers[STAT_THREADS];
        sum->pages += numbers[STAT_RSS];
        if (ticks > before)
            p->ticks_total[group] += ticks - before;
    }
    process->shown = process->shown && !failed;
    if (!failed) {
        uint64_t ticks = numbers[STAT_UTIME] + numbers[STAT_STIME];
        bool same = process->start == numbers[STAT_START];
        process->used = same && ticks > process->ticks ? ticks - process->ticks : same ? 0 : ticks;
        process->pages = numbers[STAT_RSS];
        process->threads = numbers[STAT_THREADS];
        process->start = numbers[STAT_START];
        process->ticks = ticks;
    }
}

// ---- one by one, at level 4 ----

// Of the job's processes that are not picked yet the one that used most, or holds most; NULL when none does.
static struct process *greatest(const struct processes *p, bool by_memory)
{
    struct process *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < p->last_count; i++) {
        struct process *process = &p->last[i];
        uint64_t value = by_memory ? process->pages : process->used;
        if (process->of_job && process->start && !process->picked && value > most) {
            best = process;
            most = value;
        }
    }
    return best;
}

static void put_shown(struct source *s, double *values)
{
    struct processes *p = s->state;
    size_t shown = 0;
    for (size_t i = 0; i < p->last_count; i++)
        shown += p->last[i].shown;
    for (int by_memory = 0; by_memory < 2; by_memory++) {
        for (size_t i = 0; i < p->last_count; i++)
            p->last[i].picked = false;
        for (int i = 0; i < SHOWN_EACH; i++) {
            struct process *process = greatest(p, by_memory);
            if (!process)
                break;
            process->picked = true;
            if (process->shown || shown >= SHOWN_MAX || p->shown_ever >= SHOWN_EVER)
                continue;
            process->shown = true;
            shown++;
            p->shown_ever++;
        }
    }
    for (size_t i = 0; i < p->last_count; i++) {
        const struct process *process = &p->last[i];
        if (!process->shown)
            continue;
        char pid[24];
        snprintf(pid, sizeof pid, "%" PRIu64, process->pid);
        ptrdiff_t instance = source_instance(s, str_of(pid), str_of(process->command));
        if (instance < 0)
            continue;
        source_put_at(s, values, instance, METRIC_PROCESS_CPU, (double)process->ticks / p->ticks_per_second);
        source_put_at(s, values, instance, METRIC_PROCESS_RESIDENT, (double)process->pages * p->page_bytes);
        source_put_at(s, values, instance, METRIC_PROCESS_THREADS, (double)process->threads);
    }
    source_forget_unseen(s);
}

static void put_details(struct source *s, double *values)
{
    struct processes *p = s->state;
    struct sums sums[GROUPS] = {0};
    int64_t begun = cpu_time_ns();
    for (size_t i = 0; i < p->last_count; i++)
        if (p->last[i].ours)
            add_process(p, &p->last[i], sums);
    for (int group = OWN; group <= (p->job[0] ? JOB : OWN); group++) {
        if (sums[group].read + sums[group].gone < p->count[group])
            continue; // a sum over some of them is not the sum
        source_put(s, values, group_rows[group].threads, (double)sums[group].threads);
        source_put(s, values, group_rows[group].resident, (double)sums[group].pages * p->page_bytes);
        source_put(s, values, group_rows[group].cpu, (double)p->ticks_total[group] / p->ticks_per_second);
    }
    if (s->tagged_rows)
        put_shown(s, values);
    p->details_due_ns = s->instant_ns + wait_after(begun, DETAILS_SHARE);
}

static int processes_sample(struct source *s, double *values)
{
    struct processes *p = s->state;
    int64_t now = s->instant_ns;
    bool unchanged =
        is_unchanged(p, s) && p->valid && !p->unsure && now >= p->walked_ns && now < p->walked_ns + WALK_MAX_NS;
    s->reason[0] = 0; // without /proc/loadavg every sample walks
    if (!unchanged && !is_due(now, p->walk_due_ns)) {
        p->valid = false; // until the next walk
        return 0;
    }
    int failed = unchanged ? 0 : walk(s);
    if (failed)
        return failed;
    for (int group = OWN; group <= (p->job[0] ? JOB : OWN); group++)
        source_put(s, values, group_rows[group].processes, (double)p->count[group]);
    if (is_due(now, p->details_due_ns))
        put_details(s, values);
    return 0;
}

static void processes_close(struct source *s)
{
    struct processes *p = s->state;
    for (size_t i = 0; i < p->last_count; i++)
        close_stat(p, &p->last[i]);
    procfile_close(&p->loadavg);
    close(p->folder);
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
    struct process *last = calloc(PROCESSES_FIRST, sizeof *last), *now = calloc(PROCESSES_FIRST, sizeof *now);
    if (!p || !last || !now) {
        free(p);
        free(last);
        free(now);
        close(folder);
        return source_fail(s, -ENOMEM, "no memory");
    }
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    p->folder = folder;
    p->ticks_per_second = ticks > 0 ? (double)ticks : 100;
    p->page_bytes = page > 0 ? (double)page : 4096;
    p->last = last;
    p->now = now;
    p->capacity = PROCESSES_FIRST;
    const char *job = s->options->job ? s->options->job : "";
    int size = snprintf(p->job, sizeof p->job, "%s%s", JOB_VARIABLE, job);
    if (!job[0] || size < 0 || (size_t)size >= sizeof p->job)
        p->job[0] = 0;
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
    .keys = {"pid", "command"},
    .tagged_from = METRIC_PROCESS_CPU,
    .tagged_to = METRIC_PROCESS_THREADS,
};
