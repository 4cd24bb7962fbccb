// io_files.c - descriptors, file systems and files.
//
// A file gets series of its own as soon as one opening of it has moved enough bytes: 64 KiB for the
// first 16 files of a process, 1 MiB for the next 16, then 16 MiB, then 256 MiB. So a program that
// first reads thousands of small files (every Python program) still has room for its large files.
// The bytes and calls of other openings are added to the series file=other when the file is closed,
// and at the end of the process.
//
// A signal handler may interrupt this accounting in its own thread. The handler's calls are then
// not recorded; only their number is (io_uncounted_calls). If the handler never returns, the
// interrupted call is uncounted, too.
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/direct.h"
#include "trace/io.h"
#include "trace/spin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    PATH_BYTES = 1024, // of a longer path, only the end is kept
    LINE_BYTES = 4096,
    MOUNT_POINT_FIELD = 5, // field in /proc/self/mountinfo, counted from 1
};
static const uint64_t first_threshold = 64 << 10;

struct io_file {
    struct io_cells cells; // named after the file's path
    char path[PATH_BYTES + 1];
};

struct mount {
    dev_t device;
    struct io_cells cells; // named after the mount point
    char point[PATH_BYTES + 1];
};

struct io_slot io_slots[IO_SLOTS];
_Atomic bool io_off = true; // true until the library has started

static _Atomic int slots_end; // descriptors below this number may have been used
static struct mount mounts[IO_MOUNTS_MAX];
static _Atomic int mount_count;
static struct io_file files[IO_FILES_MAX];
// What identifies each of `files`: apart from them, because every file that is opened is compared.
static struct file_id {
    dev_t device;
    ino_t inode;
} file_ids[IO_FILES_MAX];
static _Atomic int file_count;
static struct io_cells other_files = {.name = "other", .is_file = true};
static struct io_cells other_mounts = {.name = "other"};
static spin adding;

// `busy`: this thread is in the accounting. `missed`: number of calls that signal handlers made
// meanwhile. `warm`: the thread has cells in libsonde.
static __thread volatile sig_atomic_t busy, missed, warm;
static __thread int alone;      // the depth of begin_alone
static __thread int *own_errno; // errno of this thread, without a call of libc

static inline int *errno_place(void)
{
    if (__builtin_expect(!own_errno, 0))
        own_errno = &errno;
    return own_errno;
}

static const char *const op_names[IO_OPS] = {"read", "write", "open", "close", "sync"};

// ---- rare work: adding a mount, a file or a metric

// Takes the lock. Signals are blocked, so that no handler waits for a lock of its own thread. From
// then on, all calls of this thread belong to the accounting, so they do not count.
static uint64_t begin_alone(void)
{
    uint64_t before = 0, all = UINT64_MAX;
    if (!alone)
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
    if (!alone++)
        spin_lock(&adding);
    return before;
}

static void end_alone(uint64_t before)
{
    if (--alone)
        return;
    spin_unlock(&adding);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

// Defines the metrics of an operation at its first call, so that only series with values exist.
// Threads that do this at the same time get the same handles.
__attribute__((noinline, cold)) static void define_op(struct io_cells *c, enum io_op op)
{
    const char *of_file = c->is_file ? "io_file_" : "io_";
    char name[32];
    const struct sonde_tag tags[] = {{c->is_file ? "file" : "fs", c->name},
                                     {"op", op_names[op]},
                                     {"program", program_invocation_short_name}};
    size_t count = c->is_file ? 2 : 3;
    uint64_t before = begin_alone();
    snprintf(name, sizeof name, "%scalls", of_file);
    c->calls[op] = counter_define(name, "", "calls of programs on files", tags, count);
    snprintf(name, sizeof name, "%sseconds", of_file);
    c->seconds[op] =
        counter_define(name, "seconds", "time of programs in calls on files", tags, count);
    snprintf(name, sizeof name, "%sbytes", of_file);
    if (op < IO_MOVES)
        c->bytes[op] =
            counter_define(name, "bytes", "bytes that calls on files moved", tags, count);
    // Release: a thread that reads `defined` also reads the handles.
    atomic_store_explicit(&c->defined[op], true, memory_order_release);
    end_alone(before);
}

// ---- the amounts of one opening

// Returns the sum. A process with one thread needs no atomic addition, which takes 5 ns.
static inline uint64_t add_amount(_Atomic uint64_t *to, uint64_t amount, bool one_thread)
{
    if (!one_thread)
        return atomic_fetch_add_explicit(to, amount, memory_order_relaxed) + amount;
    uint64_t sum = atomic_load_explicit(to, memory_order_relaxed) + amount;
    atomic_store_explicit(to, sum, memory_order_relaxed);
    return sum;
}

// Returns the amount, which is 0 from then on.
static inline uint64_t take_amount(_Atomic uint64_t *from)
{
    uint64_t amount = atomic_load_explicit(from, memory_order_relaxed);
    if (!amount)
        return 0;
    if (!has_one_thread())
        return atomic_exchange_explicit(from, 0, memory_order_relaxed);
    atomic_store_explicit(from, 0, memory_order_relaxed);
    return amount;
}

// Makes libsonde allocate this thread's cells now, because libsonde itself makes traced calls for
// that.
__attribute__((noinline, cold)) static void get_cells(const struct io_cells *c, enum io_op op)
{
    uint64_t before = begin_alone();
    sonde_add(c->calls[op], 0);
    warm = 1;
    end_alone(before);
}

// Adds `calls` calls of one operation, which took `seconds` and moved `bytes`.
static inline void add(struct io_cells *c, enum io_op op, double calls, double bytes,
                       double seconds)
{
    // Acquire: if the operation is defined, its handles are set.
    if (__builtin_expect(!atomic_load_explicit(&c->defined[op], memory_order_acquire), 0))
        define_op(c, op);
    if (__builtin_expect(!warm, 0))
        get_cells(c, op);
    // The same as sonde_add, for handles that are nearly always valid.
    if (__builtin_expect(c->calls[op] != 0, 1))
        sonde_cell_add(c->calls[op], calls);
    if (__builtin_expect(c->seconds[op] != 0, 1))
        sonde_cell_add(c->seconds[op], seconds);
    if (op < IO_MOVES && __builtin_expect(c->bytes[op] != 0, 1))
        sonde_cell_add(c->bytes[op], bytes);
}

// Calls fstatat instead of fstat: fstat is traced, and older libraries do not export it.
static bool look_at(int fd, struct stat *info)
{
    return fstatat(fd, "", info, AT_EMPTY_PATH) == 0;
}

// ---- the names of files and file systems

// Threads may have little stack, so long texts are static, below the lock.
static char line_text[LINE_BYTES];

// Finds the path of an open file, without the kernel's mark for a removed file. Of a long path it
// keeps the end.
static bool path_of(int fd, char path[PATH_BYTES + 1])
{
    static const char removed[] = " (deleted)";
    char link[64], *whole = line_text;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    uint64_t before = begin_alone();
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, whole, sizeof line_text - 1);
    if (n <= 0) {
        end_alone(before);
        return false;
    }
    size_t size = (size_t)n, mark = sizeof removed - 1;
    if (size > mark && memcmp(whole + size - mark, removed, mark) == 0)
        size -= mark;
    whole[size] = 0;
    size_t skipped = size > PATH_BYTES ? size - PATH_BYTES : 0;
    // do not begin within a character
    while (skipped && ((unsigned char)whole[skipped] & 0xc0) == 0x80)
        skipped++;
    memcpy(path, whole + skipped, size - skipped + 1);
    end_alone(before);
    return true;
}

// Reads a line of mountinfo. Keeps its mount point if it is the longest prefix of `path` so far.
static void take_mount_line(char *line, const char *path, char *point, size_t point_bytes)
{
    char *rest = line, *field = NULL;
    for (int i = 0; i < MOUNT_POINT_FIELD; i++)
        field = strsep(&rest, " ");
    size_t size = field ? strlen(field) : 0;
    bool holds = size == 1 ||
                 (size && strncmp(path, field, size) == 0 && (path[size] == '/' || !path[size]));
    if (holds && size < point_bytes && size >= strlen(point))
        memcpy(point, field, size + 1);
}

// Uses system calls only, because the functions of libc are traced. The caller has the lock.
static void find_mount_point(const char *path, char point[PATH_BYTES + 1])
{
    char *text = line_text;
    size_t size = 0;
    point[0] = 0;
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    while (fd >= 0) {
        long n = syscall(SYS_read, fd, text + size, sizeof line_text - 1 - size);
        if (n <= 0)
            break;
        size += (size_t)n;
        text[size] = 0;
        char *line = text, *end;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            take_mount_line(line, path, point, PATH_BYTES + 1);
            line = end + 1;
        }
        size = (size_t)(text + size - line);
        memmove(text, line, size + 1);
        if (size == sizeof line_text - 1)
            size = 0; // the line is longer than the buffer, and its beginning is lost
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
}

static struct io_cells *mount_of(dev_t device)
{
    // Acquire: the mounts below the count are complete.
    int count = atomic_load_explicit(&mount_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (mounts[i].device == device)
            return &mounts[i].cells;
    return NULL;
}

// Returns the cells of an open file's file system, or NULL if it has none (a memfd).
static struct io_cells *add_mount(int fd, dev_t device)
{
    char path[PATH_BYTES + 1];
    if (!path_of(fd, path) || path[0] != '/' || strncmp(path, "/memfd:", 7) == 0)
        return NULL;
    uint64_t before = begin_alone();
    struct io_cells *found = mount_of(device);
    int count = atomic_load_explicit(&mount_count, memory_order_relaxed);
    if (!found && count == IO_MOUNTS_MAX) {
        found = &other_mounts;
    } else if (!found) {
        struct mount *fresh = &mounts[count];
        find_mount_point(path, fresh->point);
        fresh->device = device;
        fresh->cells.name = fresh->point[0] ? fresh->point : "unknown";
        found = &fresh->cells;
        // Release: a thread that reads the count reads the new mount complete.
        atomic_store_explicit(&mount_count, count + 1, memory_order_release);
    }
    end_alone(before);
    return found;
}

// ---- files with series of their own

static struct io_file *file_of(dev_t device, ino_t inode, int fd)
{
    // Acquire: the files below the count are complete.
    int count = atomic_load_explicit(&file_count, memory_order_acquire);
    for (int i = count - 1; i >= 0; i--) {
        char path[PATH_BYTES + 1];
        if (file_ids[i].inode != inode || file_ids[i].device != device)
            continue;
        // The inode number of a removed file may belong to another file by now.
        if (path_of(fd, path) && strcmp(path, files[i].path) == 0)
            return &files[i];
    }
    return NULL;
}

static uint64_t threshold(int count)
{
    return first_threshold << (4 * (count / IO_FILES_A_STEP));
}

static void add_amounts(struct io_cells *cells, struct io_pending *pending)
{
    for (int op = 0; op < IO_MOVES; op++) {
        uint64_t calls = take_amount(&pending->calls[op]);
        if (!calls)
            continue;
        uint64_t bytes = take_amount(&pending->bytes[op]), ns = take_amount(&pending->ns[op]);
        add(cells, (enum io_op)op, (double)calls, (double)bytes, (double)ns / NS_PER_S);
    }
}

__attribute__((noinline, cold)) static void give_series(struct io_slot *slot, int fd)
{
    struct stat info;
    uint64_t before = begin_alone();
    // Another thread has set it first. Acquire: that file is complete.
    if (atomic_load_explicit(&slot->file, memory_order_acquire)) {
        end_alone(before);
        return;
    }
    int count = atomic_load_explicit(&file_count, memory_order_relaxed);
    struct io_file *file = NULL;
    bool there = look_at(fd, &info);
    if (there)
        file = file_of(info.st_dev, info.st_ino, fd);
    if (there && !file && count < IO_FILES_MAX && path_of(fd, files[count].path)) {
        file = &files[count];
        file_ids[count] = (struct file_id){info.st_dev, info.st_ino};
        file->cells.name = file->path;
        file->cells.is_file = true;
        // Release: a thread that reads the count reads the new file complete.
        atomic_store_explicit(&file_count, count + 1, memory_order_release);
    }
    if (file) {
        // Release: a thread that reads the pointer reads the file complete.
        atomic_store_explicit(&slot->file, file, memory_order_release);
        add_amounts(&file->cells, &slot->pending);
    }
    end_alone(before);
}

// ---- the slots of descriptors

static void settle(struct io_slot *slot)
{
    // Acquire: the file is complete.
    struct io_file *file = atomic_load_explicit(&slot->file, memory_order_acquire);
    add_amounts(file ? &file->cells : &other_files, &slot->pending);
}

static void use_slot(int fd)
{
    int end = atomic_load_explicit(&slots_end, memory_order_relaxed);
    while (end <= fd && !atomic_compare_exchange_weak_explicit(
                            &slots_end, &end, fd + 1, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void classify(struct io_slot *slot, int fd, dev_t device, ino_t inode, mode_t mode)
{
    int state = IO_NO_FILE;
    struct io_cells *mount = NULL;
    if (S_ISREG(mode) || S_ISBLK(mode)) {
        mount = mount_of(device);
        mount = mount ? mount : add_mount(fd, device);
        state = mount ? IO_FILE : IO_NO_FILE;
    }
    slot->mount = mount;
    if (mount)
        atomic_store_explicit(&slot->file, file_of(device, inode, fd), memory_order_relaxed);
    uint64_t opened_ns = take_amount(&slot->opened_ns);
    if (mount && opened_ns)
        add(mount, IO_OPEN, 1, 0, (double)opened_ns / NS_PER_S);
    use_slot(fd);
    // Release: a thread that reads IO_FILE also reads the mount.
    atomic_store_explicit(&slot->state, state, memory_order_release);
}

__attribute__((noinline, cold)) static int find_state(struct io_slot *slot, int fd)
{
    struct stat info;
    uint64_t before = begin_alone();
    if (look_at(fd, &info))
        classify(slot, fd, info.st_dev, info.st_ino, info.st_mode);
    end_alone(before);
    // Acquire: the slot of a file has its mount.
    return atomic_load_explicit(&slot->state, memory_order_acquire);
}

// Returns the slot of a file, or NULL if the descriptor is not a file.
static inline struct io_slot *slot_of(int fd)
{
    if (fd < 0 || fd >= IO_SLOTS)
        return NULL;
    struct io_slot *slot = &io_slots[fd];
    // Acquire: the slot of a file has its mount.
    int state = atomic_load_explicit(&slot->state, memory_order_acquire);
    if (__builtin_expect(state == IO_UNKNOWN, 0))
        state = find_state(slot, fd);
    return state == IO_FILE ? slot : NULL;
}

static inline bool enter(void)
{
    if (io_off)
        return false;
    if (__builtin_expect(busy, 0)) {
        missed = missed + !alone;
        return false;
    }
    busy = 1;
    return true;
}

__attribute__((noinline, cold)) static void add_missed(void)
{
    uint64_t before = begin_alone();
    sonde_add(sonde_counter("io_uncounted_calls", ""), missed);
    missed = 0;
    end_alone(before);
}

static inline void leave(void)
{
    if (__builtin_expect(missed, 0))
        add_missed();
    busy = 0;
}

void io_abandon(void)
{
    if (!busy || alone) // alone: signals are blocked, so this is no signal handler
        return;
    busy = 0;
    missed = missed + 1;
    if (enter())
        leave();
}

static inline void add_to_file(struct io_slot *slot, int fd, enum io_op op, int64_t bytes,
                               double seconds)
{
    // Acquire: the file is complete.
    struct io_file *file = atomic_load_explicit(&slot->file, memory_order_acquire);
    if (file) {
        add(&file->cells, op, 1, (double)bytes, seconds);
        return;
    }
    struct io_pending *p = &slot->pending;
    bool one_thread = has_one_thread();
    add_amount(&p->calls[op], 1, one_thread);
    add_amount(&p->ns[op], (uint64_t)(int64_t)(seconds * NS_PER_S), one_thread);
    uint64_t moved = add_amount(&p->bytes[op], (uint64_t)bytes, one_thread);
    if (__builtin_expect(moved < first_threshold, 1))
        return;
    int count = atomic_load_explicit(&file_count, memory_order_relaxed);
    if (count < IO_FILES_MAX && moved >= threshold(count))
        give_series(slot, fd);
}

static inline void count(int fd, enum io_op op, int64_t bytes, double seconds)
{
    struct io_slot *slot = slot_of(fd);
    if (!slot)
        return;
    int64_t moved = bytes > 0 ? bytes : 0;
    add(slot->mount, op, 1, (double)moved, seconds);
    if (op < IO_MOVES)
        add_to_file(slot, fd, op, moved, seconds);
}

void io_count(int fd, enum io_op op, int64_t bytes, uint64_t begin)
{
    if (!begin)
        return;
    double seconds = timing_seconds_since(begin);
    int *place = errno_place(), code = *place;
    if (enter()) {
        count(fd, op, bytes, seconds);
        leave();
    }
    *place = code;
}

void io_count_untimed(int fd, enum io_op op, int64_t bytes)
{
    int *place = errno_place(), code = *place;
    if (io_begin(fd) && enter()) {
        count(fd, op, bytes, 0);
        leave();
    }
    *place = code;
}

// The number was free, so if its slot is in use, a function without a wrapper has closed it. The
// kind of the new descriptor is looked up later, because most programs call fstat themselves.
void io_opened(int fd, uint64_t begin)
{
    if (!begin || fd < 0 || fd >= IO_SLOTS)
        return;
    uint64_t ns = (uint64_t)(int64_t)(timing_seconds_since(begin) * NS_PER_S);
    struct io_slot *slot = &io_slots[fd];
    if (atomic_load_explicit(&slot->state, memory_order_relaxed) != IO_UNKNOWN)
        io_forget(fd);
    atomic_store_explicit(&slot->opened_ns, ns ? ns : 1, memory_order_relaxed);
    use_slot(fd);
}

struct io_cells *io_forget(int fd)
{
    if (io_off || fd < 0 || fd >= IO_SLOTS)
        return NULL;
    struct io_slot *slot = &io_slots[fd];
    int *place = errno_place(), code = *place;
    struct io_cells *mount = NULL;
    // Acquire: the slot of a file has its mount.
    int state = atomic_load_explicit(&slot->state, memory_order_acquire);
    bool only_opened =
        state == IO_UNKNOWN && atomic_load_explicit(&slot->opened_ns, memory_order_relaxed);
    if ((state == IO_FILE || only_opened) && enter()) {
        if (slot_of(fd)) {
            mount = slot->mount;
            settle(slot);
        }
        leave();
    }
    if (state != IO_UNKNOWN || only_opened) {
        atomic_store_explicit(&slot->opened_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&slot->file, NULL, memory_order_relaxed);
        // Release: a thread that finds the slot unknown also finds it without time and file.
        atomic_store_explicit(&slot->state, IO_UNKNOWN, memory_order_release);
    }
    *place = code;
    return mount;
}

void io_closed(struct io_cells *mount, uint64_t begin)
{
    if (!mount || !begin)
        return;
    double seconds = timing_seconds_since(begin);
    int *place = errno_place(), code = *place;
    if (enter()) {
        add(mount, IO_CLOSE, 1, 0, seconds);
        leave();
    }
    *place = code;
}

void io_forget_range(unsigned from, unsigned to)
{
    unsigned end = (unsigned)atomic_load_explicit(&slots_end, memory_order_relaxed);
    for (unsigned fd = from; fd < end && fd <= to; fd++)
        io_forget((int)fd);
}

void io_learn(int fd, dev_t device, ino_t inode, mode_t mode)
{
    int *place = errno_place(), code = *place;
    if (!busy && enter()) {
        classify(&io_slots[fd], fd, device, inode, mode);
        leave();
    }
    *place = code;
}

// ---- the process

// The parent records what its descriptors have done. The child starts with empty counts.
static void after_fork_in_child(void)
{
    int end = atomic_load_explicit(&slots_end, memory_order_relaxed);
    memset((void *)io_slots, 0, (size_t)end * sizeof *io_slots);
    busy = missed = warm = 0;
    alone = 0;
}

__attribute__((constructor)) static void begin(void)
{
    io_off = trace_is_off();
    if (io_off)
        return;
    direct_begin(io_direct);
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

__attribute__((destructor)) static void end(void)
{
    io_abandon();
    io_forget_range(0, IO_SLOTS);
}
