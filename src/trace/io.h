// io.h - what libsonde_io.so counts. Internal to src/trace.
//
// A wrapper (io_posix.c, io_stdio.c) calls the next function, and reports the call here. The table
// of descriptors (io_files.c) has a slot for each number:
//
//   IO_UNKNOWN ──next call: fstat───▶ IO_FILE      a regular file or a block device, with its mount
//        ▲                      └───▶ IO_NO_FILE   a socket, pipe, terminal, memfd: never counted
//        └───────close, dup2, fork────────┘
//
// So a descriptor counts from its first read or write on if it was inherited, duplicated, or opened
// by a function without a wrapper.
//
// Cost of a call: two readings of the cycle counter (18 ns) and three cells of the file system (6
// ns). A file with series of its own costs three more cells; any other file costs three atomic
// additions (10 ns). A wrapper never changes errno.
#ifndef SONDE_TRACE_IO_H
#define SONDE_TRACE_IO_H

#include "trace/timing.h"

#include "sonde.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

// The operations, which have series of their own. The first IO_MOVES of them move bytes.
enum io_op { IO_READ, IO_WRITE, IO_OPEN, IO_CLOSE, IO_SYNC, IO_OPS, IO_MOVES = 2 };

enum {
    IO_SLOTS = 65536, // descriptors from here on are not counted; 5 MiB of address space
    IO_MOUNTS_MAX = 32,
    IO_FILES_MAX = 64, // files of a process that have series of their own
    IO_FILES_A_STEP = 16,
};

enum io_state { IO_UNKNOWN, IO_NO_FILE, IO_FILE };

// The cells of a file system, or of a file.
struct io_cells {
    const char *name;
    bool is_file;
    _Atomic bool defined[IO_OPS];
    sonde_handle calls[IO_OPS], seconds[IO_OPS], bytes[IO_MOVES];
};

struct io_file; // a file with series of its own (io_files.c)

// What one opening of a file has done, if the file has no series of its own.
struct io_pending {
    _Atomic uint64_t bytes[IO_MOVES], calls[IO_MOVES], ns[IO_MOVES];
};

struct io_slot {
    _Atomic int state;
    struct io_cells *mount;
    _Atomic(struct io_file *) file;
    struct io_pending pending;
    _Atomic uint64_t opened_ns; // time of the open, while the state is IO_UNKNOWN; 0: none
};
extern struct io_slot io_slots[IO_SLOTS];
extern _Atomic bool io_off; // true: no call is recorded

// Returns the state of a descriptor. While no call is recorded, none is a file.
static inline int io_state(int fd)
{
    return io_off || fd < 0 || fd >= IO_SLOTS
               ? IO_NO_FILE
               : atomic_load_explicit(&io_slots[fd].state, memory_order_relaxed);
}

// Called before a call on a descriptor. Returns the time, or 0 if the call does not count.
static inline uint64_t io_begin(int fd)
{
    return io_state(fd) == IO_NO_FILE ? 0 : timing_now();
}

// Called before a call that opens a file.
static inline uint64_t io_begin_open(void)
{
    return io_off ? 0 : timing_now();
}

// Called after a call that began at `begin` and moved `bytes`. If `bytes` is negative, the call
// failed, but counts as a call. If `begin` is 0, nothing happens.
void io_count(int fd, enum io_op op, int64_t bytes, uint64_t begin);

// Counts a call that moves a few characters. Its time is not measured.
void io_count_untimed(int fd, enum io_op op, int64_t bytes);

// Called after a call that opened `fd`. If `fd` is negative, the call failed, and does not count.
void io_opened(int fd, uint64_t begin);

// Called around a close of `fd`: io_forget before it, because afterwards the number may belong to
// another thread's file, and io_closed after it. `mount` is the file system; NULL: the close does
// not count.
struct io_cells *io_forget(int fd);
void io_closed(struct io_cells *mount, uint64_t begin);

// Records what the descriptors in from..to have done, because they are closed, or because this
// process ends or becomes another program.
void io_forget_range(unsigned from, unsigned to);

// The functions whose wrappers make the system call themselves. NULL ends the list.
extern const char *const io_direct[];

// Called before a jump to another place in the program, and before the process ends. If a signal
// handler does this, its thread never returns to the accounting that the signal interrupted. So the
// interrupted call is uncounted, and the thread's further calls count.
void io_abandon(void);

// Called after the program itself has called fstat, with what it says. The state of the descriptor
// is IO_UNKNOWN.
void io_learn(int fd, dev_t device, ino_t inode, mode_t mode);

#endif
