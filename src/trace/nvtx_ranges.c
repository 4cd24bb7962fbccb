// nvtx_ranges.c - `sonde run --trace nvtx`: ranges and marks of NVTX.
//
// A thread has one stack of the ranges that it has pushed, over all domains, so that spans nest
// across domains. A pop ends the last range of its domain, which need not be the last one of the
// stack. If the stack is full, a range only counts its depth; the next pop of its domain ends it.
//
// A range that is started may end in another thread, so it has a place in a table that all threads
// share. Its id is the place's number and a count, so an old id does not end a new range. An id
// moves a place from free over busy to used and back; only the thread that made it busy touches it.
#include "trace/bounds.h"
#include "trace/counter.h"
#include "trace/names.h"
#include "trace/nvtx.h"
#include "trace/spin.h"
#include "trace/timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOMAINS_MAX = 64, // further domains are the last one
    TEXTS_MAX = 4096, // registered; further texts are the last one
    DEPTH_MAX = 64,   // of a thread's stack
    PLACES = 1024,    // ranges that have started and not ended
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

// clang-format off
static struct name_table
    ranges = {.tag = "range", .second_tag = "domain", .metrics = {
        {"nvtx_ranges", "", "ranges that have ended", SONDE_COUNTER},
        {"nvtx_range_seconds", "seconds", "time from the begin of ranges to their end",
         SONDE_COUNTER}}},
    marks = {.tag = "mark", .second_tag = "domain", .metrics = {
        {"nvtx_marks", "", "marks", SONDE_COUNTER}}};
// clang-format on

static bool off = true;
static sonde_handle uncounted;
static atomic_flag adding = ATOMIC_FLAG_INIT;
// The first one is that of calls without a domain, and has no name.
static struct domain domains[DOMAINS_MAX];
static _Atomic(const char *) texts[TEXTS_MAX]; // NULL: free
static unsigned texts_used;
static struct place places[PLACES];
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

// ---- texts

// The beginning of a text as UTF-8; `out` holds NAMES_BYTES and the NUL.
static const char *narrow(const wchar_t *wide, char *out)
{
    char *at = out, *end = out + NAMES_BYTES - 4;
    for (; wide && *wide && at <= end; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            c = 0xfffd;
        if (c < 0x80) {
            *at++ = (char)c;
            continue;
        }
        unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; // bytes after the first one
        *at++ = (char)((0xf0 << (3 - more) & 0xff) | c >> 6 * more);
        while (more--)
            *at++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    *at = 0;
    return out;
}

static const char *registered(const void *handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)texts;
    // Acquire: the text is complete.
    return at < sizeof texts && at % sizeof *texts == 0
               ? atomic_load_explicit(&texts[at / sizeof *texts], memory_order_acquire)
               : NULL;
}

// Returns NULL for a range without a text.
static const char *text_of(const struct nvtx_attributes *a, char *out)
{
    if (!a || a->size < sizeof *a)
        return NULL;
    return a->text_type == NVTX_TEXT_ASCII        ? a->text.ascii
           : a->text_type == NVTX_TEXT_WIDE       ? narrow(a->text.wide, out)
           : a->text_type == NVTX_TEXT_REGISTERED ? registered(a->text.registered)
                                                  : NULL;
}

static void *register_text(void *domain, const char *text)
{
    (void)domain;
    spin_lock(&adding);
    unsigned number = texts_used < TEXTS_MAX - 1 ? texts_used++ : TEXTS_MAX - 1;
    if (!atomic_load_explicit(&texts[number], memory_order_relaxed)) {
        const char *kept =
            number == TEXTS_MAX - 1 ? strdup("other") : strndup(text ? text : "", NAMES_BYTES);
        atomic_store_explicit(&texts[number], kept, memory_order_release);
    }
    spin_unlock(&adding);
    return &texts[number];
}

static void *register_wide(void *domain, const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    return register_text(domain, narrow(text, out));
}

// Equal names are the same domain.
static void *create_domain(const char *name)
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

static void *create_domain_wide(const wchar_t *name)
{
    char out[NAMES_BYTES + 1];
    return create_domain(narrow(name, out));
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
    *range = (struct range){.cells = names_find(&ranges, text, name), .domain = domain};
    if (trace_may_span(&range->cells->spans)) {
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

// Returns the depth of the range in its domain, from 0 on; negative without memory.
static int push(const void *handle, const char *text)
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

// Returns the depth of the range that has ended; negative if none was open.
static int pop(void *handle)
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

static uint64_t start(const void *handle, const char *text)
{
    for (unsigned tries = 0; tries < PLACES; tries++) {
        uint64_t id = atomic_fetch_add_explicit(&next_range, 1, memory_order_relaxed), expected = 0;
        struct place *place = &places[id % PLACES];
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

static void stop(void *handle, uint64_t id)
{
    (void)handle;
    struct place *place = &places[id % PLACES];
    if (id == FREE || id == BUSY ||
        !atomic_compare_exchange_strong_explicit(&place->id, &id, BUSY, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    end(&place->range);
    atomic_store_explicit(&place->id, FREE, memory_order_release);
}

static void mark(const void *handle, const char *text)
{
    const char *name = name_of(domain_of(handle));
    struct name_cells *cells = names_find(&marks, text, name);
    sonde_add(cells->metrics[0], 1);
    const struct sonde_tag tag = {"domain", name};
    if (trace_may_span(&cells->spans))
        sonde_annotate_tags(text_in(cells), &tag, name != NULL);
}

// ---- the functions in NVTX' tables

static void domain_mark(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    mark(domain, text_of(a, out));
}

static int domain_push(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    return push(domain, text_of(a, out));
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    return start(domain, text_of(a, out));
}

static void core_mark(const struct nvtx_attributes *a)
{
    domain_mark(NULL, a);
}

static void core_mark_text(const char *text)
{
    mark(NULL, text);
}

static void core_mark_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    mark(NULL, narrow(text, out));
}

static int core_push(const struct nvtx_attributes *a)
{
    return domain_push(NULL, a);
}

static int core_push_text(const char *text)
{
    return push(NULL, text);
}

static int core_push_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    return push(NULL, narrow(text, out));
}

static int core_pop(void)
{
    return pop(NULL);
}

static uint64_t core_start(const struct nvtx_attributes *a)
{
    return domain_start(NULL, a);
}

static uint64_t core_start_text(const char *text)
{
    return start(NULL, text);
}

static uint64_t core_start_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    return start(NULL, narrow(text, out));
}

static void core_stop(uint64_t id)
{
    stop(NULL, id);
}

#define FUNCTION(name) (nvtx_function)(void (*)(void)) name

static const struct {
    int module;
    unsigned place;
    nvtx_function function;
} functions[] = {
    {NVTX_MODULE_CORE, NVTX_MARK, FUNCTION(core_mark)},
    {NVTX_MODULE_CORE, NVTX_MARK_A, FUNCTION(core_mark_text)},
    {NVTX_MODULE_CORE, NVTX_MARK_W, FUNCTION(core_mark_wide)},
    {NVTX_MODULE_CORE, NVTX_RANGE_START, FUNCTION(core_start)},
    {NVTX_MODULE_CORE, NVTX_RANGE_START_A, FUNCTION(core_start_text)},
    {NVTX_MODULE_CORE, NVTX_RANGE_START_W, FUNCTION(core_start_wide)},
    {NVTX_MODULE_CORE, NVTX_RANGE_END, FUNCTION(core_stop)},
    {NVTX_MODULE_CORE, NVTX_RANGE_PUSH, FUNCTION(core_push)},
    {NVTX_MODULE_CORE, NVTX_RANGE_PUSH_A, FUNCTION(core_push_text)},
    {NVTX_MODULE_CORE, NVTX_RANGE_PUSH_W, FUNCTION(core_push_wide)},
    {NVTX_MODULE_CORE, NVTX_RANGE_POP, FUNCTION(core_pop)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_MARK, FUNCTION(domain_mark)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_START, FUNCTION(domain_start)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_END, FUNCTION(stop)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_PUSH, FUNCTION(domain_push)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_POP, FUNCTION(pop)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_REGISTER_A, FUNCTION(register_text)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_REGISTER_W, FUNCTION(register_wide)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_CREATE_A, FUNCTION(create_domain)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_CREATE_W, FUNCTION(create_domain_wide)},
};

// Runs once, although several libraries of a program contain NVTX.
static void start_recording(void)
{
    off = trace_is_off() || pthread_key_create(&thread_key, free_thread) != 0;
    if (!off)
        uncounted =
            counter_define("nvtx_uncounted", "",
                           "ranges beyond the number that can be open at the same time", NULL, 0);
}

int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_recording);
    const struct nvtx_callbacks *callbacks =
        off || !get_table ? NULL : get_table(NVTX_TABLE_CALLBACKS);
    if (!callbacks || callbacks->size < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        nvtx_function **table = NULL;
        unsigned size = 0;
        if (callbacks->get_table(functions[i].module, &table, &size) && table &&
            functions[i].place < size && table[functions[i].place])
            *table[functions[i].place] = functions[i].function;
    }
    return 1;
}
