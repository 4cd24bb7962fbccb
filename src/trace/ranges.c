// ranges.c - stacks of pushed ranges, and a table of started ones.
//
// A thread has one stack of the ranges that it has pushed, over all domains, so that spans nest
// across domains. A pop ends the last range of its domain, which need not be the last one of the
// stack. If the stack is full, a range only counts its depth; the next pop of its domain ends it.
//
// A range that is started may end in another thread, so it has a place in a table that all threads
// share. Its id is the place's number and a count, so an old id does not end a new range. An id
// moves a place from free over busy to used and back; only the thread that made it busy touches it.
#include "trace/ranges.h"
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/spin.h"
#include "trace/timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOMAINS_MAX = 64, // further domains are the last one
    DEPTH_MAX = 64,   // of a thread's stack
    ALIKE_MAX = 16,   // names that differ only in their numbers; further ones have no numbers
    ALIKE_SLOTS = 1024,
};

struct domain {
    _Atomic(const char *) name; // NULL: free
};

struct range {
    struct name_cells *cells;
    const struct domain *domain;
    uint64_t begin;
    struct sonde_span span; // id 0: none
};

// Allocated, because a library that is opened at run time has few bytes of thread-local storage.
// Freed when the thread ends.
struct thread {
    struct range stack[DEPTH_MAX];
    unsigned size;
    unsigned depth[DOMAINS_MAX]; // of each domain; those that the stack had no room for included
    unsigned full[DOMAINS_MAX];  // those that the stack had no room for
};

#define FREE UINT64_C(0)
#define BUSY UINT64_MAX

struct place {
    _Atomic uint64_t id; // FREE, BUSY, or of the range
    struct range range;
};

static const struct ranges_tool *tool;
static sonde_handle uncounted;
static spin adding;
// The first one is that of calls without a domain, and has no name.
static struct domain domains[DOMAINS_MAX];
static struct place places[RANGES_PLACES];
static _Atomic uint64_t next_range = 1;
static __thread struct thread *self;
static pthread_key_t thread_key;

static void free_thread(void *thread)
{
    self = NULL;
    free(thread);
}

static struct thread *this_thread(void)
{
    if (!self) {
        self = calloc(1, sizeof *self);
        pthread_setspecific(thread_key, self);
    }
    return self;
}

// Equal names are the same domain.
void *ranges_domain(const char *name)
{
    if (!name || !name[0])
        return NULL;
    unsigned number = 1;
    spin_lock(&adding);
    for (;; number++) {
        const char *known = atomic_load_explicit(&domains[number].name, memory_order_relaxed);
        if (number == DOMAINS_MAX - 1)
            name = "other";
        if (!known)
            // Release: a thread that gets the handle reads a complete name.
            atomic_store_explicit(&domains[number].name, strndup(name, NAMES_BYTES),
                                  memory_order_release);
        if (!known || number == DOMAINS_MAX - 1 || strncmp(known, name, NAMES_BYTES) == 0)
            break;
    }
    spin_unlock(&adding);
    return &domains[number];
}

// A handle that is not ours is that of calls without a domain.
static const struct domain *domain_of(const void *handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)domains;
    return at < sizeof domains && at % sizeof *domains == 0 ? &domains[at / sizeof *domains]
                                                            : domains;
}

static const char *name_of(const struct domain *domain)
{
    return atomic_load_explicit(&domain->name, memory_order_acquire);
}

// ---- texts

// The number of names that differ only in their numbers, by the hash of what they share.
struct alike {
    _Atomic uint64_t hash; // 0: free
    _Atomic unsigned names;
};
static struct alike alike[ALIKE_SLOTS];

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Copies a text with # in place of its numbers; unless `all`, only of those that are values: after
// a '=', up to the next letter.
static void without_numbers(const char *text, bool all, char out[NAMES_BYTES + 1])
{
    char *at = out, *end = out + NAMES_BYTES;
    bool value = false;
    while (*text && at < end) {
        if (is_digit(*text) && (value || all)) {
            *at++ = '#';
            while (is_digit(*text))
                text++;
            continue;
        }
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        value = *text == '=' || (value && !letter);
        *at++ = *text++;
    }
    *at = 0;
}

// True for the first ALIKE_MAX names of those that share this text.
static bool may_have_numbers(const char *shared, const struct name_table *table)
{
    uint64_t hash = (uintptr_t)table;
    for (; *shared; shared++)
        hash = (hash ^ (unsigned char)*shared) * UINT64_C(0x100000001b3);
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (size_t tries = 0; tries < ALIKE_SLOTS; tries++) {
        struct alike *a = &alike[((hash >> 32) + tries) % ALIKE_SLOTS];
        uint64_t known = 0;
        if (atomic_compare_exchange_strong_explicit(&a->hash, &known, hash, memory_order_relaxed,
                                                    memory_order_relaxed) ||
            known == hash)
            return atomic_load_explicit(&a->names, memory_order_relaxed) < ALIKE_MAX &&
                   atomic_fetch_add_explicit(&a->names, 1, memory_order_relaxed) < ALIKE_MAX;
    }
    return false;
}

static struct name_cells *cells_of(struct name_table *table, const char *text, const char *domain)
{
    char given[NAMES_BYTES + 1], shared[NAMES_BYTES + 1];
    if (!text || !strpbrk(text, "0123456789"))
        return names_find(table, text, domain);
    without_numbers(text, false, given);
    struct name_cells *known = names_known(table, given, domain);
    if (known)
        return known;
    without_numbers(given, true, shared);
    return names_find(table, may_have_numbers(shared, table) ? given : shared, domain);
}

// ---- ranges

static const char *text_in(const struct name_cells *cells)
{
    const char *name = atomic_load_explicit(&cells->name, memory_order_relaxed);
    return name ? name : "other";
}

static void begin(struct range *range, const struct domain *domain, const char *text,
                  const struct sonde_span *parent)
{
    const char *name = name_of(domain);
    *range = (struct range){.cells = cells_of(tool->ranges, text, name), .domain = domain};
    if (trace_may_span(&range->cells->spans, SPANS_MAX)) {
        const struct sonde_tag tag = {"domain", name};
        range->span = sonde_span_open(text_in(range->cells), &tag, name != NULL, parent);
    }
    range->begin = timing_now();
}

static void end(const struct range *range)
{
    sonde_add(range->cells->metrics[0], 1);
    sonde_add(range->cells->metrics[1], timing_seconds_since(range->begin));
    if (range->span.id) {
        const char *name = name_of(range->domain);
        const struct sonde_tag tag = {"domain", name};
        sonde_span_close(&range->span, text_in(range->cells), &tag, name != NULL);
    }
}

int ranges_push(const void *handle, const char *text)
{
    const struct domain *domain = domain_of(handle);
    struct thread *thread = this_thread();
    size_t number = (size_t)(domain - domains);
    if (!thread)
        return -1;
    if (thread->size == DEPTH_MAX) {
        thread->full[number]++;
        sonde_add(uncounted, 1);
        return (int)thread->depth[number]++;
    }
    const struct sonde_span *parent = NULL;
    for (unsigned i = thread->size; i-- && !parent;)
        parent = thread->stack[i].span.id ? &thread->stack[i].span : NULL;
    begin(&thread->stack[thread->size++], domain, text, parent);
    return (int)thread->depth[number]++;
}

int ranges_pop(const void *handle)
{
    const struct domain *domain = domain_of(handle);
    struct thread *thread = this_thread();
    size_t number = (size_t)(domain - domains);
    if (!thread || !thread->depth[number])
        return -1;
    int depth = (int)--thread->depth[number];
    if (thread->full[number]) {
        thread->full[number]--;
        return depth;
    }
    unsigned at = thread->size - 1;
    while (thread->stack[at].domain != domain)
        at--;
    end(&thread->stack[at]);
    memmove(&thread->stack[at], &thread->stack[at + 1],
            (--thread->size - at) * sizeof *thread->stack);
    return depth;
}

uint64_t ranges_start(const void *handle, const char *text)
{
    for (unsigned tries = 0; tries < RANGES_PLACES; tries++) {
        uint64_t id = atomic_fetch_add_explicit(&next_range, 1, memory_order_relaxed), expected = 0;
        struct place *place = &places[id % RANGES_PLACES];
        // Acquire: the last user of the place has read its range.
        if (!atomic_compare_exchange_strong_explicit(&place->id, &expected, BUSY,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        begin(&place->range, domain_of(handle), text, NULL);
        // Release: the thread that ends the range reads it.
        atomic_store_explicit(&place->id, id, memory_order_release);
        return id;
    }
    sonde_add(uncounted, 1);
    return 0;
}

void ranges_stop(uint64_t id)
{
    struct place *place = &places[id % RANGES_PLACES];
    if (id == FREE || id == BUSY ||
        !atomic_compare_exchange_strong_explicit(&place->id, &id, BUSY, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    end(&place->range);
    atomic_store_explicit(&place->id, FREE, memory_order_release);
}

void ranges_mark(const void *handle, const char *text)
{
    const char *name = name_of(domain_of(handle));
    struct name_cells *cells = cells_of(tool->marks, text, name);
    sonde_add(cells->metrics[0], 1);
    const struct sonde_tag tag = {"domain", name};
    if (trace_may_span(&cells->spans, SPANS_MAX))
        sonde_annotate_tags(text_in(cells), &tag, name != NULL);
}

bool ranges_begin_recording(const struct ranges_tool *given)
{
    if (trace_is_off() || pthread_key_create(&thread_key, free_thread) != 0)
        return false;
    uncounted =
        counter_define(given->uncounted, "",
                       "ranges beyond the number that can be open at the same time", NULL, 0);
    tool = given;
    return true;
}
