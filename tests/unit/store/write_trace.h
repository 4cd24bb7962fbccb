// write_trace.h - logs every single write to a mapped file, in order: a crash can happen between
// any two of them.
//
// The mapping is read-only, so each instruction that writes to it faults. The handler lets it
// through alone (the processor's trap flag stops after that one instruction), logs the written
// bytes, and makes the mapping read-only again. So the log has the stores that the machine really
// executes, in their order, whatever the compiler and the C library made of the source. Other
// changes of the file (growing, punching a hole, a sync, an acknowledged append) are logged between
// the writes.
//
// From the log, a test can restore any state that a crash leaves: for a killed process all writes
// up to the n-th, for a machine that went down any mixture of page versions since the last sync.
//
// Linux on x86-64. Elsewhere trace_available() is false.
#ifndef SONDE_TESTS_STORE_WRITE_TRACE_H
#define SONDE_TESTS_STORE_WRITE_TRACE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { TRACE_PAGE = 4096, TRACE_STORE_MAX = 64, TRACE_ENTRIES_MAX = 1 << 20 };

enum trace_kind {
    TRACE_WRITE,
    TRACE_SIZE,
    TRACE_PUNCH,
    TRACE_SYNC_BEGINS,
    TRACE_SYNCED,
    TRACE_ACKNOWLEDGED
};

struct trace_entry {
    enum trace_kind kind;
    // WRITE: the same call continues in the next entry, so no crash lies between them
    bool goes_on;
    uint32_t size; // WRITE
    // WRITE, PUNCH: offset; SIZE: the file's size; SYNCED: true if the earlier writes are
    // guaranteed
    uint64_t at;
    union {
        uint8_t bytes[TRACE_STORE_MAX]; // WRITE
        uint64_t length;                // PUNCH
        int64_t numbers[8];             // ACKNOWLEDGED: the test's own counters
    };
};

struct trace {
    uint8_t *base; // of the mapping
    size_t mapped_bytes, file_bytes;
    bool on;
    struct trace_entry *entries;
    size_t count;
    uint8_t *at; // of the current write
};

static struct trace trace;

static inline struct trace_entry *trace_add(enum trace_kind kind, uint64_t at)
{
    static struct trace_entry none;
    if (!trace.on)
        return &none;
    if (trace.count == TRACE_ENTRIES_MAX)
        abort();
    struct trace_entry *e = &trace.entries[trace.count++];
    e->kind = kind;
    e->goes_on = false;
    e->at = at;
    return e;
}

#if defined(__x86_64__) && defined(__linux__)

enum { TRACE_TRAP_FLAG = 0x100 };

static struct sigaction trace_old_segv, trace_old_trap;

static inline bool trace_available(void)
{
    return true;
}

// After the store has closed the file, no mapping exists.
static inline void trace_protect(int protection)
{
    if (trace.base && mprotect(trace.base, trace.mapped_bytes, protection) && errno != ENOMEM)
        abort();
}

// A write may extend into the next page.
static inline void trace_pages(int protection)
{
    uint8_t *page = trace.base + (size_t)(trace.at - trace.base) / TRACE_PAGE * TRACE_PAGE;
    size_t left = (size_t)(trace.base + trace.mapped_bytes - page);
    if (mprotect(page, left < 2 * TRACE_PAGE ? left : 2 * TRACE_PAGE, protection))
        abort();
}

static inline void trace_on_segv(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    uint8_t *at = info->si_addr;
    if (!trace.on || at < trace.base || at >= trace.base + trace.mapped_bytes) {
        // not our fault: it repeats under the old handler
        sigaction(SIGSEGV, &trace_old_segv, NULL);
        return;
    }
    trace.at = at;
    trace_pages(PROT_READ | PROT_WRITE);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRACE_TRAP_FLAG;
}

static inline void trace_on_trap(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRACE_TRAP_FLAG;
    size_t at = (size_t)(trace.at - trace.base),
           left = trace.file_bytes > at ? trace.file_bytes - at : 0;
    struct trace_entry *e = trace_add(TRACE_WRITE, at);
    e->size = (uint32_t)(left < TRACE_STORE_MAX ? left : TRACE_STORE_MAX);
    memcpy(e->bytes, trace.at, e->size);
    trace_pages(PROT_READ);
}

static inline void trace_start(void)
{
    trace.entries = malloc(TRACE_ENTRIES_MAX * sizeof *trace.entries);
    if (!trace.entries)
        abort();
    trace.count = 0;
    struct sigaction segv = {.sa_sigaction = trace_on_segv, .sa_flags = SA_SIGINFO};
    struct sigaction trap = {.sa_sigaction = trace_on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &segv, &trace_old_segv);
    sigaction(SIGTRAP, &trap, &trace_old_trap);
    trace.on = true;
    trace_protect(PROT_READ);
}

// Stops logging; the log stays.
static inline void trace_stop(void)
{
    if (!trace.on)
        return;
    trace.on = false;
    trace_protect(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &trace_old_segv, NULL);
    sigaction(SIGTRAP, &trace_old_trap, NULL);
}

#else

static inline bool trace_available(void)
{
    return false;
}

static inline void trace_protect(int protection)
{
    (void)protection;
}

static inline void trace_start(void)
{
}

static inline void trace_stop(void)
{
}

#endif

// A write by the kernel. The kernel copies page by page, and the process may be killed between two
// pages.
static inline void trace_call(const uint8_t *data, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size && trace.on;) {
        size_t n = size - done < TRACE_STORE_MAX ? size - done : TRACE_STORE_MAX;
        size_t to_page_end = TRACE_PAGE - (at + done) % TRACE_PAGE;
        struct trace_entry *e = trace_add(TRACE_WRITE, at + done);
        e->size = (uint32_t)(n < to_page_end ? n : to_page_end);
        e->goes_on = e->size < to_page_end && done + e->size < size;
        memcpy(e->bytes, data + done, e->size);
        done += e->size;
    }
}

// The store has mapped the file anew.
static inline void trace_mapped(uint8_t *base, size_t bytes)
{
    trace.base = base;
    trace.mapped_bytes = bytes;
    if (trace.on)
        trace_protect(PROT_READ);
}

static inline void trace_free(void)
{
    free(trace.entries);
    trace = (struct trace){0};
}

// ── Restoring the file ───────────────────────────────────────────────────────────────────────────

struct trace_image {
    uint8_t *bytes;
    size_t size, capacity;
};

static inline void image_resize(struct trace_image *m, size_t size)
{
    if (size > m->capacity) {
        m->capacity = 2 * size;
        m->bytes = realloc(m->bytes, m->capacity);
        if (!m->bytes)
            abort();
    }
    if (size > m->size)
        memset(m->bytes + m->size, 0, size - m->size);
    m->size = size;
}

static inline void image_copy(struct trace_image *to, const struct trace_image *from)
{
    to->size = 0;
    image_resize(to, from->size);
    if (from->size)
        memcpy(to->bytes, from->bytes, from->size);
}

// Applies the entry to the file, or only to the pages for which `page_counts` is true (NULL: all).
static inline void image_apply(struct trace_image *m, const struct trace_entry *e,
                               bool (*page_counts)(size_t page, void *user), void *user)
{
    if (e->kind == TRACE_SIZE)
        image_resize(m, e->at);
    uint64_t length = e->kind == TRACE_WRITE ? e->size : e->kind == TRACE_PUNCH ? e->length : 0;
    for (uint64_t done = 0; done < length && e->at + done < m->size;) {
        uint64_t at = e->at + done, n = TRACE_PAGE - at % TRACE_PAGE;
        n = n < length - done ? n : length - done;
        n = n < m->size - at ? n : m->size - at;
        if (!page_counts || page_counts(at / TRACE_PAGE, user)) {
            if (e->kind == TRACE_WRITE)
                memcpy(m->bytes + at, e->bytes + done, n);
            else
                memset(m->bytes + at, 0, n);
        }
        done += n;
    }
}

#endif
