// programs.c - programs come, are found, are watched, and go.
//
// What makes a descriptor a segment that can be mapped without fear: it is a memfd of tmpfs (a hole in one of hugetlbfs may raise SIGBUS),
// sealed against shrinking (reading behind its end would), its size is what its header says, and that follows from two bounded numbers.
// They are read once.
#include "base/hash.h"
#include "base/log.h"
#include "emit/process_start.h"
#include "ingest/ingest_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { ADOPT_FDS_MAX = 65536 }; // of one process

static uint64_t start_ticks_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return process_start_ticks(path);
}

// Whether the process still has the segment mapped: after an exec() it is alive, but no longer this program.
static bool maps_segment(const struct program *p)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)p->pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool found = false;
    while (!found && getline(&line, &capacity, f) > 0) {
        unsigned long inode;
        found = strstr(line, "/memfd:" SEGMENT_NAME) && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 &&
                inode == p->inode;
    }
    free(line);
    fclose(f);
    return found;
}

void program_look(struct program *p)
{
    struct pollfd f = {p->pidfd, POLLIN, 0};
    if (p->pidfd >= 0)
        p->gone = p->gone || poll(&f, 1, 0) > 0;
    else if (p->pid > 0) // no descriptor could be had
        p->gone = p->gone || start_ticks_of(p->pid) != p->start_ticks;
}

void ingest_hangup(struct ingest *in, pid_t pid)
{
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        if (p->pid != pid)
            continue;
        program_look(p);
        if (!p->gone && !maps_segment(p)) // of one that we cannot see, the end of the connection is all that we learn
            p->gone = true;
    }
}

void program_warn(struct program *p, const char *what)
{
    if (!p->warned)
        log_warning("process %d has written over what it shares with us: %s makes no sense; what cannot be read is "
                    "dropped and counted",
                    (int)p->pid, what);
    p->warned = true;
}

void program_free(struct program *p)
{
    for (size_t i = 0; i < p->definition_count; i++)
        free(p->definitions[i].group);
    if (p->base)
        munmap((void *)(uintptr_t)p->base, p->at.bytes);
    if (p->agent)
        munmap(p->agent, p->agent_bytes);
    if (p->pidfd >= 0)
        close(p->pidfd);
    cells_free(&p->cells);
    free(p->definitions);
    free(p->tag_text);
    free(p->tails);
    free(p->newest);
    free(p->dropped);
    free(p);
}

size_t programs_gone(struct ingest *in)
{
    bool any = false;
    size_t cells = 0;
    for (size_t i = 0; i < in->program_count; i++)
        any = any || in->programs[i]->gone;
    if (!any)
        return 0;
    // The last state of its cells, whenever it ended between two samples.
    cells = cells_sample(in, clock_realtime_ns(), true);
    for (size_t i = 0; i < in->program_count;) {
        struct program *p = in->programs[i];
        if (!p->gone) {
            i++;
            continue;
        }
        cells_let_go(in, p);
        program_free(p);
        in->programs[i] = in->programs[--in->program_count];
    }
    return cells;
}

// Reads the fixed part of the header once, and maps what it describes.
static int map_segment(struct program *p, int fd)
{
    struct stat st;
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC || seals < 0 ||
        !(seals & F_SEAL_SHRINK) || st.st_size < SEGMENT_PAGE)
        return -EPROTO;
    struct segment_header h;
    ssize_t n = pread(fd, &h, offsetof(struct segment_header, definitions_bytes), 0);
    if (n != (ssize_t)offsetof(struct segment_header, definitions_bytes) || h.magic != SEGMENT_MAGIC ||
        h.version != SEGMENT_VERSION || h.slots < SEGMENT_SLOTS_MIN || h.slots > SEGMENT_SLOTS_MAX ||
        h.ring_bytes < SEGMENT_RING_MIN || h.ring_bytes > SEGMENT_RING_MAX || (h.ring_bytes & (h.ring_bytes - 1)))
        return -EPROTO;
    p->at = segment_layout(h.slots, h.ring_bytes);
    if ((uint64_t)st.st_size != p->at.bytes)
        return -EPROTO;
    p->slots = h.slots;
    p->ring_bytes = h.ring_bytes;
    p->clock = h.clock;
    p->device = st.st_dev;
    p->inode = st.st_ino;
    void *base = mmap(NULL, p->at.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    p->base = base;
    void *agent = mmap(NULL, p->at.agent_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)p->at.agent);
    if (agent == MAP_FAILED)
        return -errno;
    p->agent = agent;
    p->agent_bytes = p->at.agent_bytes;
    return 0;
}

static void watch(struct program *p)
{
    if (p->pid <= 0)
        return;
    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->pidfd < 0 && errno == ESRCH)
        p->gone = true;
    uint64_t now = start_ticks_of(p->pid);
    if (now && p->start_ticks && now != p->start_ticks) // another process by now: this one is gone
        p->gone = true;
    p->start_ticks = now;
}

// From clock ticks since boot to boot time; a second earlier, as ticks are coarse. A start that cannot be is ignored.
static int64_t start_of(uint64_t start_ticks)
{
    int64_t up = clock_read_ns(CLOCK_BOOTTIME), hz = sysconf(_SC_CLK_TCK);
    int64_t since_boot =
        hz > 0 && start_ticks < (uint64_t)(INT64_MAX / NS_PER_S) ? (int64_t)start_ticks * (NS_PER_S / hz) : 0;
    return (since_boot <= up ? since_boot : 0) - INGEST_START_SLACK_NS;
}

static int attach(struct ingest *in, struct program *p, int fd)
{
    int r = map_segment(p, fd);
    if (r != 0)
        return r;
    for (size_t i = 0; i < in->program_count; i++)
        if (in->programs[i]->inode == p->inode && in->programs[i]->device == p->device)
            return -EBUSY;
    const volatile struct segment_header *h = (const volatile struct segment_header *)(const volatile void *)p->base;
    p->start_ticks = h->start_ticks;
    p->start_ns = start_of(p->start_ticks);
    p->salt = hash_u64((uint64_t)h->pid << 32 ^ p->start_ticks ^ hash_u64(p->inode)); // the next agent gets the same
    p->conversion.lanes = 1;
    p->tails = calloc(p->slots, sizeof *p->tails);
    p->newest = calloc(p->slots, sizeof *p->newest);
    p->dropped = calloc(p->slots, sizeof *p->dropped);
    if (!p->tails || !p->newest || !p->dropped ||
        !ingest_grow(&in->programs, &in->program_capacity, in->program_count + 1, sizeof(struct program *)))
        return -ENOMEM;
    uint32_t used = h->slots_used;
    for (uint32_t i = 0; i < used && i < p->slots; i++) { // where the agent before us has stopped
        p->tails[i] = atomic_load_explicit(&p->agent->tails[i].bytes, memory_order_relaxed) & ~UINT64_C(7);
        p->dropped[i] = atomic_load_explicit(&p->agent->tails[i].dropped, memory_order_relaxed);
    }
    p->dropped_slots = atomic_load_explicit(&p->agent->dropped_slots, memory_order_relaxed);
    p->refused = atomic_load_explicit(&p->agent->refused, memory_order_relaxed);
    watch(p);
    p->id = in->next_id++;
    in->programs[in->program_count++] = p;
    in->stats.programs_total++;
    return 0;
}

int ingest_attach(struct ingest *in, int segment_fd, pid_t pid)
{
    int r = in->program_count >= in->programs_max ? -ENFILE : 0;
    struct program *p = r == 0 ? calloc(1, sizeof *p) : NULL;
    if (r == 0 && !p)
        r = -ENOMEM;
    if (p) {
        p->pid = pid;
        p->pidfd = -1;
        r = attach(in, p, segment_fd);
    }
    close(segment_fd); // the mapping is enough
    if (r != 0 && p)
        program_free(p);
    return r;
}

// A segment for our socket, made by the very process that has it open (children may have inherited it).
static bool is_ours(const struct ingest *in, int fd, pid_t pid)
{
    struct segment_header h;
    ssize_t n = pread(fd, &h, offsetof(struct segment_header, definitions_bytes), 0);
    return n == (ssize_t)offsetof(struct segment_header, definitions_bytes) && h.magic == SEGMENT_MAGIC &&
           h.pid == (uint32_t)pid &&
           (!in->socket_path || strncmp(h.socket_path, in->socket_path, sizeof h.socket_path) == 0);
}

static int adopt_from(struct ingest *in, pid_t pid)
{
    char path[64], link[64];
    int found = 0, looked = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return 0;
    for (struct dirent *entry; looked < ADOPT_FDS_MAX && (entry = readdir(d)); looked++) {
        ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof link);
        if (n != (ssize_t)strlen(SEGMENT_LINK) || memcmp(link, SEGMENT_LINK, (size_t)n) != 0)
            continue;
        int fd = openat(dirfd(d), entry->d_name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (is_ours(in, fd, pid))
            found += ingest_attach(in, fd, pid) == 0;
        else
            close(fd);
    }
    closedir(d);
    return found;
}

int ingest_adopt(struct ingest *in)
{
    DIR *d = opendir("/proc");
    int found = 0;
    if (!d)
        return 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat st;
        int64_t pid;
        if (str_to_i64(str_of(entry->d_name), &pid) && fstatat(dirfd(d), entry->d_name, &st, 0) == 0 &&
            st.st_uid == geteuid())
            found += adopt_from(in, (pid_t)pid);
    }
    closedir(d);
    return found;
}
