// programs.c - attaches, finds, watches and releases programs.
//
// A descriptor is safe to map if it is a memfd of tmpfs (a hole in one of hugetlbfs may raise
// SIGBUS), is sealed against shrinking (reading beyond its end would raise it, too), and has the
// size that its header gives. This size follows from two bounded numbers, which are read once. The
// agent's area has one fixed size.
#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/process_start.h"
#include "ingest/hello.h"
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

#ifndef SYS_pidfd_open // headers before 5.3
#define SYS_pidfd_open 434
#endif

enum { ADOPT_FDS_MAX = 65536 }; // descriptors of one process

static uint64_t start_ticks_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return process_start_ticks(path);
}

// True if the process still has the segment mapped. After an exec() the process is alive, but runs
// another program.
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
        found = strstr(line, "/memfd:" SEGMENT_NAME) &&
                sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == p->inode;
    }
    free(line);
    fclose(f);
    return found;
}

// True if the program has changed to another agent (sonde_connect).
static bool has_moved(const struct program *p)
{
    const struct segment_header *h = (const struct segment_header *)(const void *)p->base;
    // Acquire: the path of the agent was written before the number, and is read after it.
    return atomic_load_explicit(&h->moves, memory_order_acquire) != p->moves;
}

// A program that changes its agent has two agents for a while. Both would read the records between
// the tail and the head, so the second agent waits until the first one has released the lock. The
// kernel releases the lock of a killed agent.
int program_own(struct ingest *in, struct program *p)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (p->owned)
        return 0;
    if (p->lock_fd >= 0 && fcntl(p->lock_fd, F_OFD_SETLK, &lock) != 0 &&
        (errno == EAGAIN || errno == EACCES))
        return -EBUSY;
    p->owned = program_resume(p);
    if (p->owned)
        accounts_resume(in, p);
    return p->owned ? 0 : -ENOMEM;
}

void program_look(struct program *p)
{
    p->gone = p->gone || has_moved(p);
    struct pollfd f = {p->pidfd, POLLIN, 0};
    if (p->pidfd >= 0)
        p->gone = p->gone || poll(&f, 1, 0) > 0;
    else if (p->pid > 0) // no pidfd was available
        p->gone = p->gone || start_ticks_of(p->pid) != p->start_ticks;
}

void ingest_hangup(struct ingest *in, pid_t pid)
{
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *p = in->programs[i];
        if (p->pid != pid)
            continue;
        program_look(p);
        if (!p->gone &&
            // only the end of its connection shows that an invisible program has ended
            !maps_segment(p))
            p->gone = true;
    }
}

void program_warn(struct program *p, const char *what)
{
    if (!p->warned)
        log_warning("process %d has overwritten the memory that it shares with us: %s makes no "
                    "sense; data that cannot "
                    "be read are "
                    "dropped and counted",
                    (int)p->pid, what);
    p->warned = true;
}

void program_free(struct ingest *in, struct program *p)
{
    open_spans_free(in, &p->open_spans);
    free(p->ended_early);
    for (size_t i = 0; i < p->definition_count; i++)
        free(p->definitions[i].group);
    if (p->base)
        munmap((void *)(uintptr_t)p->base, p->at.bytes);
    if (p->agent)
        munmap(p->agent, SEGMENT_AGENT_BYTES);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    if (p->pidfd >= 0)
        close(p->pidfd);
    cells_free(&p->cells);
    free(p->definitions);
    free(p->tag_text);
    free(p->heads);
    free(p->tails);
    free(p->newest);
    free(p->dropped);
    free(p->commits);
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
    // Records the last state of its cells, because it may have ended between two samples.
    cells = cells_sample(in, clock_realtime_ns(), CELLS_ENDING);
    for (size_t i = 0; i < in->program_count;) {
        struct program *p = in->programs[i];
        if (!p->gone) {
            i++;
            continue;
        }
        cells_release(in, p);
        turns_release(in, p);
        if (!has_moved(p)) // after a change of agents, the other agent records its end
            open_spans_end(in, &p->open_spans, clock_realtime_ns());
        program_counted(p); // the program may continue with another agent
        if (in->forget)
            in->forget(in->keep_user, p->inode);
        program_free(in, p);
        in->programs[i] = in->programs[--in->program_count];
    }
    return cells;
}

// True if the descriptor's file cannot shrink while it is mapped.
static bool is_mappable(int fd, struct stat *st)
{
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);
    return fstat(fd, st) == 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC && seals >= 0 &&
           (seals & F_SEAL_SHRINK);
}

// Reads the fixed part of the header. Returns 0, -EPROTO, or -EPROTONOSUPPORT for another version.
static int read_header(int fd, struct segment_header *h)
{
    enum { FIXED = offsetof(struct segment_header, definitions_bytes) };
    if (pread(fd, h, FIXED, 0) != FIXED || h->magic != SEGMENT_MAGIC)
        return -EPROTO;
    return h->version == SEGMENT_VERSION ? 0 : -EPROTONOSUPPORT;
}

// Reads the fixed part of the header once, and maps the areas that it describes.
static int map_segment(struct program *p, int fd)
{
    struct stat st;
    struct segment_header h;
    if (!is_mappable(fd, &st) || st.st_size < (off_t)sizeof h)
        return -EPROTO;
    int r = read_header(fd, &h);
    if (r != 0)
        return r;
    if (h.slots < SEGMENT_SLOTS_MIN || h.slots > SEGMENT_SLOTS_MAX ||
        h.ring_bytes < SEGMENT_RING_MIN || h.ring_bytes > SEGMENT_RING_MAX ||
        (h.ring_bytes & (h.ring_bytes - 1)))
        return -EPROTO;
    p->at = segment_layout(h.slots, h.ring_bytes);
    if ((uint64_t)st.st_size != p->at.bytes)
        return -EPROTO;
    p->slots = h.slots;
    p->ring_bytes = h.ring_bytes;
    p->clock = h.clock;
    p->device = st.st_dev;
    p->inode = st.st_ino;
    p->agent_inode = h.agent_inode;
    void *base = mmap(NULL, p->at.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    p->base = base;
    return 0;
}

static int map_agent_area(struct program *p, int fd)
{
    struct stat st;
    if (!is_mappable(fd, &st) || st.st_size != SEGMENT_AGENT_BYTES || st.st_dev != p->device ||
        st.st_ino != p->agent_inode)
        return -EPROTO;
    void *agent = mmap(NULL, SEGMENT_AGENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (agent == MAP_FAILED)
        return -errno;
    p->agent = agent;
    // Open the file again, because a lock belongs to an open file, and the program and the other
    // agent share the open file of the passed descriptor.
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p->lock_fd = open(path, O_RDWR | O_CLOEXEC);
    return 0;
}

// Converts clock ticks since boot to boot time, minus a second, because ticks are coarse. Ignores
// an impossible start.
static int64_t start_of(uint64_t start_ticks)
{
    int64_t up = clock_read_ns(CLOCK_BOOTTIME), hz = sysconf(_SC_CLK_TCK);
    int64_t since_boot = hz > 0 && start_ticks < (uint64_t)(INT64_MAX / NS_PER_S)
                             ? (int64_t)start_ticks * (NS_PER_S / hz)
                             : 0;
    return (since_boot <= up ? since_boot : 0) - INGEST_START_SLACK_NS;
}

// The relation of a process to a segment: it made the segment and has connected; it made the
// segment and the agent has found it; or it only holds the descriptors, because it has inherited
// them or keeps them (launch/keeper.h).
enum whose { CONNECTED, MADE_BY_IT, HELD_BY_IT };

static void watch(struct program *p, uint64_t start_ticks, enum whose whose)
{
    p->start_ns = start_of(0); // the start of an invisible process is unknown
    if (p->pid <= 0)
        return;
    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (p->pidfd < 0 && errno == ESRCH)
        p->gone = true;
    p->start_ticks = start_ticks_of(p->pid);
    p->start_ns = start_of(p->start_ticks);
    // If the start differs from the start in the header, another process has the pid by now, or the
    // process is in a time namespace. A process that only holds the segment may have started in the
    // same clock tick as the program.
    bool other = whose == HELD_BY_IT || (start_ticks && p->start_ticks != start_ticks);
    if (p->start_ticks && other && !maps_segment(p))
        p->gone = true;
}

// The program has connected. The agent may already know it from a process that only holds its
// segment (ingest_adopt), or from an earlier connection. From now on the agent watches this
// connection and this process.
static void watch_anew(struct program *p, pid_t pid)
{
    if (p->pid == pid)
        return;
    if (p->pidfd >= 0)
        close(p->pidfd);
    p->pidfd = -1;
    p->gone = false;
    p->pid = pid;
    watch(p, ((const volatile struct segment_header *)(const volatile void *)p->base)->start_ticks,
          CONNECTED);
}

static int attach(struct ingest *in, struct program *p, struct ingest_descriptors fds,
                  enum whose whose)
{
    int r = map_segment(p, fds.segment);
    if (r == 0)
        r = map_agent_area(p, fds.agent_area);
    if (r != 0)
        return r;
    for (size_t i = 0; i < in->program_count; i++) {
        struct program *known = in->programs[i];
        if (known->inode != p->inode || known->device != p->device)
            continue;
        if (whose == CONNECTED)
            watch_anew(known, p->pid);
        if ((int32_t)(fds.moves - known->moves) >
            0) // the program changed to another agent and has returned before we released it
            known->moves = fds.moves;
        known->gone = false;
        program_look(known);
        return -EBUSY;
    }
    const volatile struct segment_header *h =
        (const volatile struct segment_header *)(const volatile void *)p->base;
    uint64_t start_ticks = h->start_ticks;
    // deterministic, so that the next agent gets the same salt
    p->salt = hash_u64((uint64_t)h->pid << 32 ^ start_ticks ^ hash_u64(p->inode));
    p->moves = fds.moves;
    if (program_own(in, p) == -ENOMEM ||
        !array_room(&in->programs, &in->program_capacity, in->program_count + 1,
                    sizeof(struct program *)))
        return -ENOMEM;
    watch(p, start_ticks, whose);
    p->id = in->next_id++;
    in->programs[in->program_count++] = p;
    in->stats.programs_total++;
    if (atomic_fetch_add_explicit(&p->agent->attached, 1, memory_order_relaxed))
        open_spans_resume(in, p);
    return 0;
}

void ingest_descriptors_close(struct ingest_descriptors *fds)
{
    if (fds->segment >= 0)
        close(fds->segment);
    if (fds->agent_area >= 0)
        close(fds->agent_area);
    fds->segment = fds->agent_area = -1;
}

static int attach_program(struct ingest *in, struct ingest_descriptors fds, pid_t pid,
                          enum whose whose)
{
    int r = in->program_count >= in->programs_max ? -ENFILE : 0;
    struct program *p = r == 0 ? calloc(1, sizeof *p) : NULL;
    if (r == 0 && !p)
        r = -ENOMEM;
    if (p) {
        p->pid = pid;
        p->pidfd = p->lock_fd = -1;
        r = attach(in, p, fds, whose);
        if (r == 0 && in->keep)
            in->keep(in->keep_user, p->inode, &fds);
    }
    ingest_descriptors_close(&fds); // the mappings stay valid without the descriptors
    if (r != 0 && p)
        program_free(in, p);
    return r;
}

int ingest_attach(struct ingest *in, struct ingest_descriptors fds, pid_t pid)
{
    return attach_program(in, fds, pid, CONNECTED);
}

// Opens the next memfd of this name in a /proc/PID/fd; returns -1 after the last one.
static int next_memfd(DIR *folder, const char *link, int flags)
{
    char text[64];
    int looked = 0, fd = -1;
    for (struct dirent *entry; fd < 0 && looked < ADOPT_FDS_MAX && (entry = readdir(folder));
         looked++) {
        ssize_t n = readlinkat(dirfd(folder), entry->d_name, text, sizeof text);
        if (n == (ssize_t)strlen(link) && memcmp(text, link, (size_t)n) == 0)
            fd = openat(dirfd(folder), entry->d_name, flags | O_CLOEXEC | O_NONBLOCK);
    }
    return fd;
}

// Opens the agent's area with this inode; returns -1 if the process has closed it.
static int open_agent_area(const char *folder_path, uint64_t inode)
{
    struct stat st;
    int fd = -1;
    DIR *d = opendir(folder_path);
    while (d && (fd = next_memfd(d, SEGMENT_AGENT_LINK, O_RDWR)) >= 0 &&
           (fstat(fd, &st) != 0 || st.st_ino != inode))
        close(fd);
    if (d)
        closedir(d);
    return fd;
}

// Returns the pid of the process in its innermost PID namespace, or 0 if the process is not
// visible.
static uint32_t own_pid_of(pid_t pid)
{
    char path[64], line[256];
    unsigned own = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
            continue;
        const char *last = line + strlen("NSpid:");
        for (const char *at = last; *at; at++)
            if ((*at == '\t' || *at == ' ') && at[1] >= '0' && at[1] <= '9')
                last = at;
        own = (unsigned)strtoul(last, NULL, 10);
        break;
    }
    if (f)
        fclose(f);
    return own;
}

// True if the path leads to our socket in the process's view. In a container, the socket may have
// another path.
static bool is_our_socket(const struct ingest *in, pid_t pid, const char *path)
{
    char there[64 + SEGMENT_PATH_MAX];
    struct stat ours, theirs;
    if (!in->socket_path || strcmp(path, in->socket_path) == 0)
        return true;
    snprintf(there, sizeof there, "/proc/%d/root%s", (int)pid, path);
    return stat(in->socket_path, &ours) == 0 && stat(there, &theirs) == 0 &&
           S_ISSOCK(theirs.st_mode) && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// Children may have inherited their parent's descriptors. So adoption first searches for the
// processes that made a segment. It takes a segment from another holder only if the maker has
// ended.
static bool is_ours(const struct ingest *in, int fd, pid_t pid, enum whose whose,
                    struct segment_header *h)
{
    int r = read_header(fd, h);
    h->socket_path[sizeof h->socket_path - 1] = 0;
    if (r == -EPROTO || (h->pid == own_pid_of(pid)) != (whose == MADE_BY_IT) ||
        !is_our_socket(in, pid, h->socket_path))
        return false;
    if (r != 0)
        ingest_warn_version(pid);
    return r == 0;
}

static int adopt_from(struct ingest *in, pid_t pid, enum whose whose)
{
    char path[64];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return 0;
    struct segment_header h;
    for (struct ingest_descriptors fds;
         (fds.segment = next_memfd(d, SEGMENT_LINK, O_RDONLY)) >= 0;) {
        fds.agent_area =
            is_ours(in, fds.segment, pid, whose, &h) ? open_agent_area(path, h.agent_inode) : -1;
        fds.moves = h.moves;
        if (fds.agent_area >= 0)
            found += attach_program(in, fds, pid, whose) == 0;
        else
            close(fds.segment);
    }
    closedir(d);
    return found;
}

static int adopt_all(struct ingest *in, enum whose whose)
{
    DIR *d = opendir("/proc");
    int found = 0;
    if (!d)
        return 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        struct stat st;
        int64_t pid;
        if (str_to_i64(str_of(entry->d_name), &pid) &&
            fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && st.st_uid == geteuid())
            found += adopt_from(in, (pid_t)pid, whose);
    }
    closedir(d);
    return found;
}

int ingest_adopt(struct ingest *in)
{
    int found = adopt_all(in, MADE_BY_IT);
    return found + adopt_all(in, HELD_BY_IT);
}
