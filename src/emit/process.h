// process.h - what libsonde knows about the process it lives in. Internal to src/emit.
//
// One struct emit_process; its life: new → on or off, decided at the first call by the environment;
// off until sonde_connect() names the agent's socket; on for good. A fork()ed child finds `mark`
// changed, and makes itself a new segment at the same address the first time it has something to
// say. `lock` is held for the first call of a thread and for definitions, never for a point.
// Nothing interrupts its holder: much of what it calls (connect, sendmsg, close) is a cancellation
// point, and a cancelled thread would never give the lock back; a signal handler that jumps away
// would not either, and a handler that forks would deadlock on its own thread's lock.
#ifndef SONDE_EMIT_PROCESS_H
#define SONDE_EMIT_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "emit/segment.h"

#include <pthread.h>
#include <stdatomic.h>

enum emit_state { EMIT_NEW, EMIT_ON, EMIT_OFF };

// A descriptor in the application's table: it may close ours, and the number may be another file's
// then.
struct emit_file {
    int fd; // -1 = not open
    uint64_t inode;
};

struct emit_segment {
    char *base; // NULL = there is none
    size_t bytes;
    struct segment_agent *agent;
    struct emit_file file, agent_file; // stay open so that an agent can find them
    // no process can map the segment for writing; else the program passes a read-only descriptor
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
    // whose segment that is; in a page that the kernel clears in children
    _Atomic(_Atomic uint8_t *) mark;

    uint32_t definitions; // so many
    size_t definitions_bytes;
    size_t definitions_reserved, gauges_reserved; // bytes
    uint64_t ring_reserved[SEGMENT_SLOTS_MAX];    // bytes of its data, by slot
    unsigned process_tags;
    // of a definition (its bytes from `what` to the last tag) to its handle
    struct map by_identity;
    _Atomic uint32_t cells_end; // handles below it have cells; 0 in a child that has no segment yet

    struct emit_file socket;
    _Atomic int64_t connect_after_ns; // on the monotonic clock
    char socket_path[SEGMENT_PATH_MAX];
    uint32_t attached_before; // agents that had attached the segment when we turned to this one
    bool said_no_agent;
};

extern struct emit_process emit_process;

// This thread's ring; &emit_no_ring (limit 0, cells_end 0: everything takes the slow path) until it
// needs one.
extern __thread struct ring *emit_self;
extern struct ring emit_no_ring;

// process.c
void emit_lock(struct emit_process *p);
bool emit_trylock(struct emit_process *p); // false: another thread has it
void emit_unlock(struct emit_process *p);
// with SONDE_LOG, on stderr
void emit_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Whether sonde is on; the first call decides it. Also notices a fork.
bool emit_on(void);

// This thread's ring, claimed if necessary; NULL if there is none left: then `points` are counted
// as dropped.
struct ring *emit_ring(uint64_t points);

// segment.c: makes and maps a segment of the process' layout. Returns 0 or a negative errno (e says
// why, *s is empty). Lowers p->slots when address space or RLIMIT_FSIZE do not allow more.
int emit_segment_create(struct emit_process *p, struct emit_segment *s, struct error *e);
void emit_segment_destroy(struct emit_segment *s);

// Has the kernel set memory aside for this part of a file of ours. Where it has none to give
// (vm.overcommit_memory=2), the first touch of a page would end the program with SIGBUS; false
// instead. True where the program has closed the descriptor.
bool emit_reserve(const struct emit_file *f, size_t offset, size_t bytes);

// connection.c
// A HELLO, if the agent is there; `wait`: up to 100 ms if its queue is full. 0 or an errno. The
// lock is held.
int emit_connect(struct emit_process *p, bool wait);
bool emit_is_connected(const struct emit_process *p); // and the agent has not hung up
// at most once a second: connects again where that is needed
void emit_connection_tend(struct emit_process *p);
void emit_bell(struct emit_process *p); // the agent sleeps and should not
// unless the application has closed it already
void emit_close(struct emit_file *f);
bool emit_is_open(const struct emit_file *f); // and still ours
uint64_t emit_inode(int fd);                  // 0 = not open

int emit_high_fd(int fd); // moved away from 0, 1, 2; takes and gives errors

// unheard.c: what waits in rings and cells where no agent has ever taken the segment.
uint64_t emit_unheard_values(struct emit_process *p);

// events.c: the next thread that takes this slot has no open spans.
void emit_spans_forget(uint32_t slot);

// definitions.c; the lock is held.
bool emit_define_process(struct emit_process *p); // number 0, from the environment

static inline uint64_t *emit_data(struct ring *r, uint64_t position)
{
    return (uint64_t *)(void *)((char *)r + SLOT_DATA + (position & r->mask));
}

#endif
