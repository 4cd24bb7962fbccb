// nvtx_ranges.c - `sonde run --trace nvtx`: ranges and marks of NVTX.
#include "trace/names.h"
#include "trace/nvtx.h"
#include "trace/ranges.h"
#include "trace/spin.h"

#include <pthread.h>
#include <string.h>

enum { TEXTS_MAX = 4096 }; // registered; further texts are the last one

// clang-format off
static struct name_table
    ranges = {.tag = "range", .second_tag = "domain", .metrics = {
        {"nvtx_ranges", "", "ranges that have ended", SONDE_COUNTER},
        {"nvtx_range_seconds", "seconds", "time from the begin of ranges to their end",
         SONDE_COUNTER}}},
    marks = {.tag = "mark", .second_tag = "domain", .metrics = {
        {"nvtx_marks", "", "marks", SONDE_COUNTER}}};
// clang-format on

static const struct ranges_tool tool = {&ranges, &marks, "nvtx_uncounted"};
static bool off = true;
static spin adding;
static _Atomic(const char *) texts[TEXTS_MAX]; // NULL: free
static unsigned texts_used;

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

static void *create_domain_wide(const wchar_t *name)
{
    char out[NAMES_BYTES + 1];
    return ranges_domain(narrow(name, out));
}

// ---- the functions in NVTX' tables

static void domain_mark(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    ranges_mark(domain, text_of(a, out));
}

static int domain_push(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    return ranges_push(domain, text_of(a, out));
}

static uint64_t domain_start(void *domain, const struct nvtx_attributes *a)
{
    char out[NAMES_BYTES + 1];
    return ranges_start(domain, text_of(a, out));
}

static void core_mark(const struct nvtx_attributes *a)
{
    domain_mark(NULL, a);
}

static void core_mark_text(const char *text)
{
    ranges_mark(NULL, text);
}

static void core_mark_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    ranges_mark(NULL, narrow(text, out));
}

static int core_push(const struct nvtx_attributes *a)
{
    return domain_push(NULL, a);
}

static int core_push_text(const char *text)
{
    return ranges_push(NULL, text);
}

static int core_push_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    return ranges_push(NULL, narrow(text, out));
}

static int core_pop(void)
{
    return ranges_pop(NULL);
}

static uint64_t core_start(const struct nvtx_attributes *a)
{
    return domain_start(NULL, a);
}

static uint64_t core_start_text(const char *text)
{
    return ranges_start(NULL, text);
}

static uint64_t core_start_wide(const wchar_t *text)
{
    char out[NAMES_BYTES + 1];
    return ranges_start(NULL, narrow(text, out));
}

static int domain_pop(void *domain)
{
    return ranges_pop(domain);
}

static void domain_stop(void *domain, uint64_t id)
{
    (void)domain;
    ranges_stop(id);
}

static void core_stop(uint64_t id)
{
    ranges_stop(id);
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
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_END, FUNCTION(domain_stop)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_PUSH, FUNCTION(domain_push)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_RANGE_POP, FUNCTION(domain_pop)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_REGISTER_A, FUNCTION(register_text)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_REGISTER_W, FUNCTION(register_wide)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_CREATE_A, FUNCTION(ranges_domain)},
    {NVTX_MODULE_DOMAINS, NVTX_DOMAIN_CREATE_W, FUNCTION(create_domain_wide)},
};

// Runs once, although several libraries of a program contain NVTX.
static void start_recording(void)
{
    off = !ranges_begin_recording(&tool);
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
