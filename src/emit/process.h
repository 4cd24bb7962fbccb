// process.h - libsonde's state of its process. Internal to src/emit.
//
// The one struct emit_process is new at first. The first call turns it on or off, depending on the
// environment; sonde_connect(), which names the agent's socket, turns it on for good. A fork()ed
// child finds `mark` changed, and makes a new segment at the same address when it first emits.
// `lock` is held for the first call of a thread and for definitions, never for a point. Its holder
// blocks all interruptions: it calls cancellation points (connect, sendmsg, close), and a cancelled
// thread would never release the lock; neither would a signal handler that jumps away, and a
// handler that forks would deadlock on its own thread's lock.
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
    EMIT_MARK_CLEARED = 0, // a child that ran no fork handlers
    EMIT_MARK_OURS = 1,
    EMIT_MARK_FORKED = 2,  // a child whose handlers have run, or have been made up for
    EMIT_MARK_MENDING = 3, // a thread makes up for the handlers
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
    char *base; // of the segment
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

    uint32_t definitions; // their number
    size_t definitions_bytes;
    size_t definitions_reserved, gauges_reserved; // bytes
    uint64_t ring_reserved[SEGMENT_SLOTS_MAX];    // bytes of data reserved, by slot
    unsigned process_tags;
    // maps a definition's identity (its bytes from `what` to the last tag) to its handle
    struct map by_identity;
    _Atomic uint32_t cells_end; // handles below this one have cells; 0 in a child without a segment

    struct emit_file socket;
    _Atomic int64_t connect_after_ns; // next attempt to connect, on the monotonic clock
    char socket_path[SEGMENT_PATH_MAX];
    // number of agents that had attached the segment when the program turned to the current agent
    uint32_t attached_before;
    bool said_no_agent;
};

extern struct emit_process emit_process;

// This thread's ring. Until the thread needs one, this is &emit_no_ring, whose limit and cells_end
// are 0, so that every call takes the slow path.
extern __thread struct ring *emit_self;
extern struct ring emit_no_ring;

// process.c
void emit_lock(struct emit_process *p);    // not in a child whose mark is cleared
bool emit_trylock(struct emit_process *p); // false: another thread has it
void emit_unlock(struct emit_process *p);
// Writes to stderr if SONDE_LOG is set.
void emit_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Whether sonde is on, which the first call decides. Also notices a fork.
bool emit_on(void);

// This thread's ring, claimed if necessary. NULL if no slot is left; then `points` are counted as
// dropped.
struct ring *emit_ring(uint64_t points);

// The same without a call, for a thread that has a ring. Only a process whose mark was set has
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

// segment.c: makes and maps a segment of the process' layout. Returns 0 or a negative errno (e says
// why, *s is empty). Lowers p->slots if address space or RLIMIT_FSIZE do not allow more.
int emit_segment_create(struct emit_process *p, struct emit_segment *s, struct error *e);
void emit_segment_destroy(struct emit_segment *s);

// Reserves memory for this part of a file of ours. Returns false if the kernel has none
// (vm.overcommit_memory=2), because touching a page would then end the program with SIGBUS. Returns
// true if the program has closed the descriptor.
bool emit_reserve(const struct emit_file *f, size_t offset, size_t bytes);

// connection.c. Sends a HELLO if an agent listens; `wait`: waits up to 100 ms if its queue is full.
// Returns 0 or an errno. The caller holds the lock.
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

// undelivered.c: the number of values that wait in rings and cells although no agent takes them.
uint64_t emit_undelivered_values(struct emit_process *p);

// events.c: the next thread that takes this slot has no open spans.
void emit_spans_forget(uint32_t slot);

// definitions.c; the caller holds the lock.
bool emit_define_process(struct emit_process *p); // definition 0, from the environment
// After a fork in the middle of a definition: keeps the published ones. Without memory, a
// definition may get a second handle.
void emit_definitions_recover(struct emit_process *p);

static inline uint64_t *emit_data(struct ring *r, uint64_t position)
{
    return (uint64_t *)(void *)((char *)r + SLOT_DATA + (position & r->mask));
}

#endif
