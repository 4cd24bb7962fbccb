// processes.c - the processes of this user: how many, their threads, memory and processor time.
//
// A walk: getdents64 over /proc; for each process that is not known one fstatat (the owner of /proc/PID is the process's user) and, when it is
// ours, one read of /proc/PID/stat. That file is kept open, up to FILES_MAX of them: next time one pread says all, and fails when the process has
// ended, even if its number has come back. The kernel lists processes in ascending order, so the last walk and this one are gone through
// side by side, without a table to search.
//
// A walk costs time in proportion to what runs on the node; the source measures it and asks to be sampled so seldom that it takes at most
// 1/COST_SHARE of a processor, but at least every PERIOD_MAX_NS.
//
// The processor time is a counter: what a process used since the last walk is added, so a process that ends takes nothing away.
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
    OWN_MAX = 16384, // processes of ours that are looked at
    LIST_SIZE = 32768,
    STAT_SIZE = 1024, // a line of /proc/PID/stat is at most about 400 bytes
    FILES_MAX = 256,  // kept open
    USER_EVERY = 16,  // walks after which the owner of a process that we know is looked at again
    COST_SHARE = 10000,
};
#define PERIOD_MAX_NS (INT64_C(10) * NS_PER_S)

// Numbers behind the closing bracket of /proc/PID/stat, counted from the state letter as 0.
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_THREADS = 17, STAT_START = 19, STAT_RSS = 21, STAT_NEEDED = 22 };

struct own {
    uint64_t pid, start, ticks; // start distinguishes two processes that had the same number
    int stat;                   // its /proc/PID/stat; -1 = not kept open
};

struct processes {
    int folder;
    double ticks_per_second, page_bytes;
    uint64_t ticks_total;
    struct own *last, *now; // ascending by pid
    size_t last_count, files;
    uint64_t walks;
    char list[LIST_SIZE] __attribute__((aligned(16)));
};

struct walk {
    size_t seen; // processes of ours
    size_t read; // of these: what they use is known
    size_t at;   // in last: all before have smaller numbers
    uint64_t threads, pages;
};

static bool parse_pid(const char *name, uint64_t *pid)
{
    struct str text = str_of(name);
    return text.size && text.data[0] != '0' && str_to_u64(text, pid);
}

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

static void close_stat(struct processes *p, struct own *own)
{
    if (own->stat < 0)
        return;
    close(own->stat);
    own->stat = -1;
    p->files--;
}

static bool read_stat(int stat, uint64_t numbers[STAT_NEEDED])
{
    char text[STAT_SIZE];
    ssize_t got = pread(stat, text, sizeof text, 0);
    return got > 0 && parse_stat((struct str){text, (size_t)got}, numbers);
}

// The process as it was at the last walk, or NULL.
static struct own *find_known(struct processes *p, struct walk *walk, uint64_t pid)
{
    if (walk->at > 0 && p->last[walk->at - 1].pid >= pid)
        walk->at = 0; // a recorded tree comes in any order
    while (walk->at < p->last_count && p->last[walk->at].pid < pid)
        walk->at++;
    return walk->at < p->last_count && p->last[walk->at].pid == pid ? &p->last[walk->at] : NULL;
}

static void keep(struct processes *p, struct walk *walk, uint64_t pid, const uint64_t numbers[STAT_NEEDED], int stat)
{
    walk->seen++;
    walk->threads += numbers[STAT_THREADS];
    walk->pages += numbers[STAT_RSS];
    p->now[walk->read++] = (struct own){pid, numbers[STAT_START], numbers[STAT_UTIME] + numbers[STAT_STIME], stat};
}

static void look_at(struct processes *p, const char *name, uint64_t pid, uid_t uid, struct walk *walk)
{
    uint64_t numbers[STAT_NEEDED];
    struct own *known = find_known(p, walk, pid);
    bool trusted = known && known->stat >= 0 && (p->walks + pid) % USER_EVERY != 0 && walk->read < OWN_MAX;
    if (trusted && read_stat(known->stat, numbers)) {
        keep(p, walk, pid, numbers, known->stat);
        known->stat = -1; // it has moved on
        return;
    }
    struct stat about;
    if (fstatat(p->folder, name, &about, 0) != 0 || about.st_uid != uid)
        return;
    char path[32];
    snprintf(path, sizeof path, "%" PRIu64 "/stat", pid);
    int stat = openat(p->folder, path, O_RDONLY | O_CLOEXEC);
    if (stat < 0 || walk->read == OWN_MAX) {
        walk->seen += stat >= 0 || (errno != ENOENT && errno != ESRCH); // it is there, but what it uses is not known
        if (stat >= 0)
            close(stat);
        return;
    }
    bool ours = read_stat(stat, numbers), kept = ours && p->files < FILES_MAX;
    if (!kept)
        close(stat);
    p->files += kept;
    if (ours)
        keep(p, walk, pid, numbers, kept ? stat : -1);
}

static int by_pid(const void *a, const void *b)
{
    const struct own *left = a, *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

// Adds what each process used since the last walk; a new one, all that it has used.
static void add_times(struct processes *p, size_t count)
{
    bool ascending = true;
    for (size_t i = 1; i < count && ascending; i++)
        ascending = p->now[i - 1].pid < p->now[i].pid;
    if (!ascending) // only a recorded tree comes in another order
        qsort(p->now, count, sizeof *p->now, by_pid);
    size_t old = 0;
    for (size_t i = 0; i < count; i++) {
        const struct own *now = &p->now[i];
        while (old < p->last_count && p->last[old].pid < now->pid)
            old++;
        bool known = old < p->last_count && p->last[old].pid == now->pid && p->last[old].start == now->start;
        uint64_t before = known ? p->last[old].ticks : 0;
        if (now->ticks > before)
            p->ticks_total += now->ticks - before;
    }
    for (size_t i = 0; i < p->last_count; i++)
        close_stat(p, &p->last[i]);
    struct own *swap = p->last;
    p->last = p->now;
    p->now = swap;
    p->last_count = count;
}

static int processes_sample(struct source *s, double *values)
{
    struct processes *p = s->state;
    struct walk walk = {0};
    int64_t begun = clock_monotonic_ns();
    if (lseek(p->folder, 0, SEEK_SET) != 0)
        return source_fail(s, -errno, "cannot list /proc: %s", strerror(errno));
    for (;;) {
        ssize_t got = getdents64(p->folder, p->list, sizeof p->list);
        if (got < 0) {
            int code = -errno;
            for (size_t i = 0; i < walk.read; i++)
                close_stat(p, &p->now[i]);
            return source_fail(s, code, "cannot list /proc: %s", strerror(-code));
        }
        if (got == 0)
            break;
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(p->list + at);
            at += entry->d_reclen;
            uint64_t pid;
            if (parse_pid(entry->d_name, &pid))
                look_at(p, entry->d_name, pid, s->options->uid, &walk);
        }
    }
    p->walks++;
    add_times(p, walk.read);
    source_put(s, values, METRIC_OWN_PROCESSES, (double)walk.seen);
    // A sum over some of them is not the sum.
    if (walk.seen == walk.read) {
        source_put(s, values, METRIC_OWN_THREADS, (double)walk.threads);
        source_put(s, values, METRIC_OWN_RESIDENT, (double)walk.pages * p->page_bytes);
        source_put(s, values, METRIC_OWN_CPU, (double)p->ticks_total / p->ticks_per_second);
    }
    int64_t wanted = (clock_monotonic_ns() - begun) * COST_SHARE;
    s->period_ns = wanted > PERIOD_MAX_NS ? PERIOD_MAX_NS : wanted;
    return 0;
}

static void processes_close(struct source *s)
{
    struct processes *p = s->state;
    for (size_t i = 0; i < p->last_count; i++)
        close_stat(p, &p->last[i]);
    close(p->folder);
    free(p->last);
    free(p->now);
    free(p);
}

static int processes_open(struct source *s)
{
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/proc", s->options->root ? s->options->root : "");
    if (size < 0 || (size_t)size >= sizeof path)
        return source_fail(s, -ENAMETOOLONG, "cannot open /proc: the root folder's path is too long");
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return source_fail(s, -errno, "cannot open %s: %s", path, strerror(errno));
    struct processes *p = calloc(1, sizeof *p);
    struct own *last = calloc(OWN_MAX, sizeof *last), *now = calloc(OWN_MAX, sizeof *now);
    if (!p || !last || !now) {
        free(p);
        free(last);
        free(now);
        close(folder);
        return source_fail(s, -ENOMEM, "no memory");
    }
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    *p = (struct processes){.folder = folder,
                            .ticks_per_second = ticks > 0 ? (double)ticks : 100,
                            .page_bytes = page > 0 ? (double)page : 4096,
                            .last = last,
                            .now = now};
    s->state = p;
    return 0;
}

const struct source_kind source_processes = {
    .name = {"processes", 9}, .open = processes_open, .sample = processes_sample, .close = processes_close};
