// process.h - what libsonde knows about the process it lives in. Internal to src/emit.
//
// One struct emit_process; its life: new → on or off, decided at the first call by the environment; off until sonde_connect() says where the
// agent is; on for good. A fork()ed
// child finds `mark` changed, and makes itself a new segment at the same address the first time it has something to say.
// `lock` is held for the first call of a thread and for definitions, never for a point.
#ifndef SONDE_EMIT_PROCESS_H
#define SONDE_EMIT_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "emit/segment.h"

#include <pthread.h>
#include <stdatomic.h>

enum emit_state { EMIT_NEW, EMIT_ON, EMIT_OFF };

struct emit_process {
    _Atomic int state;
    int level;
    bool log; // SONDE_LOG: say on stderr what goes wrong
    pthread_mutex_t lock;

    char *base; // the segment
    struct segment_layout at;
    struct segment_header *header;
    struct segment_agent *agent;
    uint64_t ring_bytes;
    uint32_t clock; // enum segment_clock
    uint32_t slots;
    _Atomic uint32_t slots_free;
    _Atomic uint8_t *mark; // whose segment that is; in a page that the kernel clears in children

    uint32_t definitions; // so many
    size_t definitions_bytes;
    unsigned process_tags;
    struct map by_identity;     // of a definition (its bytes from `what` to the last tag) to its handle
    _Atomic uint32_t cells_end; // handles below it have cells; 0 in a child that has no segment yet

    int segment_fd; // stays open so that an agent can find it
    uint64_t segment_inode;
    int socket_fd; // -1 = not connected
    uint64_t socket_inode;
    _Atomic int64_t connect_after_ns; // on the monotonic clock
    char socket_path[SEGMENT_PATH_MAX];
    bool said_no_agent;
};

extern struct emit_process emit_process;

// This thread's ring; &emit_no_ring (limit 0, cells_end 0: everything takes the slow path) until it needs one.
extern __thread struct ring *emit_self;
extern struct ring emit_no_ring;

#define emit_say(...) (emit_process.log ? log_line(LOG_WARNING, __VA_ARGS__) : (void)0)

// Whether sonde is on; decides it when nobody has asked yet. Also takes note of a fork.
bool emit_on(void);

// This thread's ring, claimed if need be; NULL when there is none to be had, and then `points` are counted as dropped.
struct ring *emit_ring(uint64_t points);

// segment.c: makes a segment of the process' layout and returns where it is mapped (NULL: e says why), its descriptor in *fd. Shrinks
// slots when address space or RLIMIT_FSIZE do not allow more, and says so in p->slots.
char *emit_segment_create(struct emit_process *p, int *fd, struct error *e);

// connection.c
void emit_connect(struct emit_process *p);         // a HELLO, if the agent is there; never waits
void emit_connection_tend(struct emit_process *p); // at most once a second: connects again where that is needed
void emit_bell(struct emit_process *p);            // the agent sleeps and should not
void emit_close(int *fd, uint64_t inode); // unless somebody has closed it already and the number is another file's
uint64_t emit_inode(int fd);              // 0 = not open

int emit_high_fd(int fd); // moved away from 0, 1, 2; takes and gives errors

// definitions.c; the lock is held.
bool emit_define_process(struct emit_process *p); // number 0, from the environment

static inline uint64_t *emit_data(struct ring *r, uint64_t position)
{
    return (uint64_t *)(void *)((char *)r + SLOT_DATA + (position & r->mask));
}

#endif
