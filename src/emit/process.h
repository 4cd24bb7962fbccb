// process.h - libsonde's state of its process. Internal to src/emit.
//
// A process has one struct emit_process. Its state is EMIT_NEW at first. The first call turns it on
// or off, depending on the environment. sonde_connect(), which names the agent's socket, turns it
// on permanently. A fork()ed child sees that `mark` has changed, and makes a new segment at the
// same address when it first emits. `lock` is held for the first call of a thread and for
// definitions, never for a point. Its holder disables cancellation and blocks signals. It calls
// cancellation points (connect, sendmsg, close), and a cancelled thread would never release the
// lock. A signal handler that jumps away would not release it either, and a handler that forks
// would deadlock on its own thread's lock.
#ifndef SONDE_EMIT_PROCESS_H
#define SONDE_EMIT_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "emit/segment.h"

#include <pthread.h>
#include <stdatomic.h>

enum emit_state { EMIT_NEW, EMIT_ON, EMIT_OFF };
enum emit_mark {
    EMIT_MARK_CLEARED = 0, // in a child that has run no fork handlers
    EMIT_MARK_OURS = 1,
    EMIT_MARK_FORKED = 2,  // in a child whose handlers have run, or mend_after_fork() has
    EMIT_MARK_MENDING = 3, // a thread runs mend_after_fork()
};

// A descriptor in the application's table: the application may close it, and the number may then
// belong to another file.
struct emit_file {
    int fd; // -1 = not open
    uint64_t inode;
};

struct emit_segment {
    char *base; // NULL = no segment
    size_t bytes;
    struct segment_agent *agent;
    struct emit_file file, agent_file; // stay open so that an agent can find them
    // the segment is sealed: no process can map it for writing; if false, the program passes a
    // read-only descriptor
    bool sealed;
};

// The state of a thread before it blocked all interruptions.
struct emit_interrupts {
    int cancel_state;
    uint64_t signals;
};

struct emit_process {
    _Atomic int state;
    int level;
    bool log; // SONDE_LOG: report errors on stderr
    pthread_mutex_t lock;
    struct emit_interrupts holder; // restored when the lock is released

    struct emit_segment segment;
    char *base; // address of the segment
    struct segment_layout at;
    struct segment_header *header;
    struct segment_agent *agent;
    uint64_t ring_bytes;
    uint32_t clock; // enum segment_clock
    uint32_t slots;
    _Atomic uint32_t slots_free;
    // enum emit_mark: identifies the segment's process; in a page that the kernel clears in
    // children
    _Atomic(_Atomic uint8_t *) mark;

    uint32_t definitions; // number of definitions
    size_t definitions_bytes;
    size_t definitions_reserved, gauges_reserved; // reserved bytes
    uint64_t ring_reserved[SEGMENT_SLOTS_MAX];    // reserved bytes of each slot's data
    unsigned process_tags;
    // maps a definition's identity (its bytes from `what` to the last tag) to its handle
    struct map by_identity;
    // handles below this one have cells; 0 in a child that has no segment
    _Atomic uint32_t cells_end;

    struct emit_file socket;
    _Atomic int64_t connect_after_ns; // next attempt to connect, on the monotonic clock
    char socket_path[SEGMENT_PATH_MAX];
    // number of agents that had attached the segment when the program connected to the current
    // agent
    uint32_t attached_before;
    bool logged_no_agent;
};

extern struct emit_process emit_process;

// This thread's ring. A thread that has no ring yet has &emit_no_ring, whose limit and cells_end
// are 0, so that every call takes the slow path.
extern __thread struct ring *emit_self;
extern struct ring emit_no_ring;

// process.c
void emit_lock(struct emit_process *p);    // must not be called in a child whose mark is cleared
bool emit_trylock(struct emit_process *p); // false: another thread has the lock
void emit_unlock(struct emit_process *p);
// Writes to stderr if SONDE_LOG is set.
void emit_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// True if sonde is on. The first call decides. Also notices a fork.
bool emit_on(void);

// Returns this thread's ring, and claims a slot for it if necessary. NULL: no slot is left, and
// `points` are counted as dropped.
struct ring *emit_ring(uint64_t points);

// Like emit_ring, but without a call if the thread has a ring. Only a process whose mark is set has
// rings.
static inline struct ring *emit_ring_if_needed(uint64_t points)
{
    struct ring *r = emit_self;
    if (__builtin_expect(r != &emit_no_ring &&
                             atomic_load_explicit(emit_process.mark, memory_order_relaxed) ==
                                 EMIT_MARK_OURS,
                         1))
        return r;
    return emit_ring(points);
}

// Blocks signals and cancellation of this thread, because an application expects neither within
// this library. Calls may nest; each restores what it found.
struct emit_interrupts emit_disable_interrupts(void);
void emit_restore_interrupts(struct emit_interrupts before);

// From segment.c: makes and maps a segment with the layout of the process. Returns 0, or a negative
// errno with a message in e; *s is then empty. Lowers p->slots if address space or RLIMIT_FSIZE do
// not allow more.
int emit_segment_create(struct emit_process *p, struct emit_segment *s, struct error *e);
void emit_segment_destroy(struct emit_segment *s);

// Reserves memory for a part of a file of ours. Returns false if the kernel has no memory
// (vm.overcommit_memory=2), because touching a page would then end the program with SIGBUS. Returns
// true if the program has closed the descriptor.
bool emit_reserve(const struct emit_file *f, size_t offset, size_t bytes);

// From connection.c: sends a HELLO if an agent listens. With `wait`, waits up to 100 ms if the
// agent's queue is full. Returns 0 or an errno. The caller holds the lock.
int emit_connect(struct emit_process *p, bool wait);
bool emit_is_connected(const struct emit_process *p); // connected, and the agent has not hung up
// Connects again if necessary, at most once a second.
void emit_connection_tend(struct emit_process *p);
void emit_bell(struct emit_process *p); // wakes a sleeping agent
// closes the file, unless the application has closed it already
void emit_close(struct emit_file *f);
bool emit_is_open(const struct emit_file *f); // open, and still refers to our file
uint64_t emit_inode(int fd);                  // 0 = not open

// moves the descriptor away from 0, 1 and 2; accepts an error and returns it
int emit_high_fd(int fd);

// From undelivered.c: returns the number of values that wait in rings and cells because no agent
// reads them.
uint64_t emit_undelivered_values(struct emit_process *p);

// From events.c: the next thread that takes this slot has no open spans.
void emit_spans_forget(uint32_t slot);

// From definitions.c; the caller holds the lock.
bool emit_define_process(struct emit_process *p); // definition 0, from the environment
// After a fork in the middle of a definition: keeps the published ones. Without memory, a
// definition may get a second handle.
void emit_definitions_recover(struct emit_process *p);

static inline uint64_t *emit_data(struct ring *r, uint64_t position)
{
    return (uint64_t *)(void *)((char *)r + SLOT_DATA + (position & r->mask));
}

#endif
