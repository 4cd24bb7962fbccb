#include "cupti_library.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { OTHER = 17, KINDS_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_buffer_wanted wanted;
static cupti_buffer_full full;
static uint8_t *buffer;
static size_t size, used, lost;
static _Bool enabled[KINDS_MAX];
static int64_t began;

// CUPTI 13's records have these sizes.
static size_t size_of(uint32_t kind)
{
    return kind == CUPTI_KERNEL ? 216
           : kind == CUPTI_SET  ? 88
           : kind == CUPTI_WAIT ? 56
           : kind == OTHER      ? 40
                                : 96;
}

static void give(void)
{
    uint8_t *given = buffer;
    size_t bytes = used;
    buffer = NULL;
    if (!given)
        return;
    pthread_mutex_unlock(&lock);
    full(NULL, 0, given, size, bytes);
    pthread_mutex_lock(&lock);
}

static void add(uint32_t kind, const void *record, size_t record_size)
{
    size_t bytes = size_of(kind), records_max;
    pthread_mutex_lock(&lock);
    if (buffer && used + bytes > size)
        give();
    if (!buffer) {
        used = 0;
        wanted(&buffer, &size, &records_max);
    }
    if (!enabled[kind % KINDS_MAX] && kind != OTHER) {
    } else if (!buffer) {
        lost++;
    } else {
        memset(buffer + used, 0xee, bytes);
        memcpy(buffer + used, record, record_size);
        used += bytes;
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t at(double seconds)
{
    return seconds < 0 ? 0 : (uint64_t)(began + (int64_t)(seconds * 1e9));
}

static void kernel(const char *name, uint32_t gpu, double start_s, double end_s)
{
    struct cupti_kernel k = {.kind = CUPTI_KERNEL,
                             .start_ns = at(start_s),
                             .end_ns = at(end_s),
                             .device = gpu,
                             .name = name};
    add(k.kind, &k, sizeof k);
}

static void copy(uint32_t kind, uint8_t copy_kind, uint8_t from, uint8_t to, uint64_t bytes,
                 double start_s, double end_s)
{
    struct cupti_copy c = {.kind = kind,
                           .copy_kind = copy_kind,
                           .from_memory = from,
                           .to_memory = to,
                           .bytes = bytes,
                           .start_ns = at(start_s),
                           .end_ns = at(end_s)};
    add(kind, &c, sizeof c);
}

static void wait_for(uint32_t wait_kind, double start_s, double end_s)
{
    struct cupti_wait w = {CUPTI_WAIT, wait_kind, at(start_s), at(end_s)};
    add(w.kind, &w, sizeof w);
}

static void other(void)
{
    uint32_t kind = OTHER;
    add(kind, &kind, sizeof kind);
}

static void lose(size_t count)
{
    pthread_mutex_lock(&lock);
    lost += count;
    pthread_mutex_unlock(&lock);
}

const struct cupti_library cupti_library = {kernel, copy, wait_for, other, lose};

#pragma GCC visibility push(default)
int cuptiActivityRegisterCallbacks(cupti_buffer_wanted w, cupti_buffer_full f);
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, const void **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count);
#pragma GCC visibility pop

int cuptiActivityRegisterCallbacks(cupti_buffer_wanted w, cupti_buffer_full f)
{
    wanted = w;
    full = f;
    began = clock_realtime_ns();
    return CUPTI_SUCCESS;
}

int cuptiActivityEnable(uint32_t kind)
{
    enabled[kind % KINDS_MAX] = 1;
    return CUPTI_SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    pthread_mutex_lock(&lock);
    // As if the last record were not complete yet: only a forced flush gives this buffer.
    if (flag == CUPTI_FORCED)
        give();
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, const void **record)
{
    uint32_t kind;
    const uint8_t *next = from;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        next = (const uint8_t *)*record + size_of(kind);
    }
    if (next >= from + bytes)
        return 1;
    *record = next;
    return CUPTI_SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    (void)context, (void)stream;
    pthread_mutex_lock(&lock);
    *count = lost;
    lost = 0;
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
