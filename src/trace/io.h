// io.h - what libsonde_io.so counts. Internal to src/trace.
//
// A wrapper (io_posix.c, io_stdio.c) calls the next function, and reports the call here. The table
// of descriptors (io_files.c) has a slot for each number:
//
//   IO_UNKNOWN ──next call: fstat───▶ IO_FILE      a regular file or a block device, with its mount
//        ▲                      └───▶ IO_NO_FILE   a socket, pipe, terminal, memfd: never counted
//        └───────close, dup2, fork────────┘
//
// So descriptors that were inherited, duplicated or opened by a function without a wrapper count
// from their first read or write on.
//
// Cost of a call: two readings of the cycle counter (20 ns), three cells of the file system (6 ns),
// and three of the file, or three atomic additions (10 ns). A wrapper never changes errno.
#ifndef SONDE_TRACE_IO_H
#define SONDE_TRACE_IO_H

#include "trace/timing.h"

#include "sonde.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

// The operations that have series of their own; the first IO_MOVES move bytes.
enum io_op { IO_READ, IO_WRITE, IO_OPEN, IO_CLOSE, IO_SYNC, IO_OPS, IO_MOVES = 2 };

enum {
    IO_SLOTS = 65536, // descriptors from here on are not counted; 5 MiB of address space
    IO_MOUNTS_MAX = 32,
    IO_FILES_MAX = 64, // files of a process that have series of their own
    IO_FILES_A_STEP = 16,
};

enum io_state { IO_UNKNOWN, IO_NO_FILE, IO_FILE };

// Cells of a file system, or of a file.
struct io_cells {
    const char *name;
    bool is_file;
    _Atomic bool defined[IO_OPS];
    sonde_handle calls[IO_OPS], seconds[IO_OPS], bytes[IO_MOVES];
};

struct io_file; // has series of its own (io_files.c)

// What an opening of a file without own series has done.
struct io_pending {
    _Atomic uint64_t bytes[IO_MOVES], calls[IO_MOVES], ns[IO_MOVES];
};

struct io_slot {
    _Atomic int state;
    struct io_cells *mount;
    _Atomic(struct io_file *) file;
    struct io_pending pending;
    _Atomic uint64_t opened_ns; // of the open, while the state is IO_UNKNOWN; 0: none
};
extern struct io_slot io_slots[IO_SLOTS];
extern _Atomic bool io_off; // nothing is recorded

// Before a call on a descriptor: the time, or 0 if the call does not count.
static inline uint64_t io_begin(int fd)
{
    if (io_off || fd < 0 || fd >= IO_SLOTS ||
        atomic_load_explicit(&io_slots[fd].state, memory_order_relaxed) == IO_NO_FILE)
        return 0;
    return timing_now();
}

// Before a call that opens a file.
static inline uint64_t io_begin_open(void)
{
    return io_off ? 0 : timing_now();
}

// After a call that began at `begin` (0: nothing happens), and has moved `bytes` (negative: it
// failed, which counts as a call).
void io_count(int fd, enum io_op op, int64_t bytes, uint64_t begin);

// A call of a character or so, whose time is not measured.
void io_count_untimed(int fd, enum io_op op, int64_t bytes);

// After a call that opened `fd` (negative: it failed, and does not count).
void io_opened(int fd, uint64_t begin);

// A close of `fd`: call io_forget before it (afterwards, the number may belong to another thread's
// file), and io_closed after it. `mount` (NULL: it does not count) is the file system.
struct io_cells *io_forget(int fd);
void io_closed(struct io_cells *mount, uint64_t begin);

// All descriptors from `from` to `to` are closed, or this process ends, or becomes another program:
// what they have done is recorded.
void io_forget_range(unsigned from, unsigned to);

// The program itself has called fstat.
void io_learn(int fd, const struct stat *info);

#endif
