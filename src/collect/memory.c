// memory.c - /proc/meminfo: "MemTotal:       24684084 kB", one name a line. A size without its unit
// is rejected.
#include "collect/fields.h"
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

enum { KIB = 1024 };

enum {
    TOTAL,
    FREE,
    AVAILABLE,
    BUFFERS,
    CACHED,
    ACTIVE,
    INACTIVE,
    LOCKED,
    SWAP_SIZE,
    SWAP_UNUSED,
    DIRTY,
    WRITEBACK,
    ANONYMOUS,
    MAPPED,
    SHARED,
    SLAB,
    RECLAIMABLE,
    UNRECLAIMABLE,
    STACKS,
    PAGE_TABLES,
    COMMITTED,
    TRANSPARENT,
    UNEVICTABLE,
    SWAP_KEPT,
    PER_CPU,
    VMALLOC,
    COMMIT_LIMIT,
    HUGE_PAGES,
    HUGE_PAGES_FREE,
    HUGE_PAGE_SIZE,
    FIELDS
};

#define SIZE(name, row)                             \
    {                                               \
        {name ":", sizeof name}, METRIC_##row, KIB, \
        {                                           \
            "kB", 2                                 \
        }                                           \
    }

// In the order of today's kernels.
static const struct field fields[FIELDS] = {
    [TOTAL] = SIZE("MemTotal", MEMORY_TOTAL),
    [FREE] = SIZE("MemFree", MEMORY_FREE),
    [AVAILABLE] = SIZE("MemAvailable", MEMORY_AVAILABLE),
    [BUFFERS] = SIZE("Buffers", MEMORY_BUFFERS),
    [CACHED] = SIZE("Cached", MEMORY_CACHED),
    [ACTIVE] = SIZE("Active", MEMORY_ACTIVE),
    [INACTIVE] = SIZE("Inactive", MEMORY_INACTIVE),
    [LOCKED] = SIZE("Mlocked", MEMORY_LOCKED),
    [SWAP_KEPT] = SIZE("SwapCached", SWAP_CACHED),
    [UNEVICTABLE] = SIZE("Unevictable", MEMORY_UNEVICTABLE),
    [SWAP_SIZE] = SIZE("SwapTotal", SWAP_TOTAL),
    [SWAP_UNUSED] = SIZE("SwapFree", SWAP_FREE),
    [DIRTY] = SIZE("Dirty", MEMORY_DIRTY),
    [WRITEBACK] = SIZE("Writeback", MEMORY_WRITEBACK),
    [ANONYMOUS] = SIZE("AnonPages", MEMORY_ANONYMOUS),
    [MAPPED] = SIZE("Mapped", MEMORY_MAPPED),
    [SHARED] = SIZE("Shmem", MEMORY_SHARED),
    [SLAB] = SIZE("Slab", MEMORY_SLAB),
    [RECLAIMABLE] = SIZE("SReclaimable", MEMORY_SLAB_RECLAIMABLE),
    [UNRECLAIMABLE] = SIZE("SUnreclaim", MEMORY_SLAB_UNRECLAIMABLE),
    [STACKS] = SIZE("KernelStack", MEMORY_KERNEL_STACKS),
    [PAGE_TABLES] = SIZE("PageTables", MEMORY_PAGE_TABLES),
    [COMMIT_LIMIT] = SIZE("CommitLimit", MEMORY_COMMIT_LIMIT),
    [VMALLOC] = SIZE("VmallocUsed", MEMORY_VMALLOC),
    [PER_CPU] = SIZE("Percpu", MEMORY_PER_CPU),
    [COMMITTED] = SIZE("Committed_AS", MEMORY_COMMITTED),
    [TRANSPARENT] = SIZE("AnonHugePages", MEMORY_TRANSPARENT_HUGE),
    // Two are numbers of pages; their scale is the page size, given by the third.
    [HUGE_PAGES] = {{"HugePages_Total:", 16}, METRIC_MEMORY_HUGE, 1, {"", 0}},
    [HUGE_PAGES_FREE] = {{"HugePages_Free:", 15}, METRIC_MEMORY_HUGE_FREE, 1, {"", 0}},
    [HUGE_PAGE_SIZE] = SIZE("Hugepagesize", MEMORY_HUGE_PAGE_SIZE),
};

struct memory {
    struct procfile file;
    struct fields fields;
};

static int memory_sample(struct source *s, double *values)
{
    struct memory *m = s->state;
    struct str text;
    int failed = procfile_read(&m->file, s, &text);
    if (failed)
        return failed;
    if (fields_read(&m->fields, text) == 0)
        return source_fail(s, -EBADMSG, "/proc/meminfo does not hold sizes of memory");
    fields_put(&m->fields, s, values);
    const bool *have = m->fields.have;
    const uint64_t *n = m->fields.numbers;
    for (int field = HUGE_PAGES; field <= HUGE_PAGES_FREE; field++)
        if (have[field])
            source_put(s, values, fields[field].row,
                       have[HUGE_PAGE_SIZE] ? (double)n[field] * (double)n[HUGE_PAGE_SIZE] * KIB
                                            : store_missing());
    if (have[TOTAL] && have[AVAILABLE] && n[AVAILABLE] <= n[TOTAL]) {
        source_put(s, values, METRIC_MEMORY_USED, (double)(n[TOTAL] - n[AVAILABLE]) * KIB);
        if (n[TOTAL] > 0)
            source_put(s, values, METRIC_MEMORY_USED_PERCENT,
                       100 * (1 - (double)n[AVAILABLE] / (double)n[TOTAL]));
    }
    if (have[SWAP_SIZE] && have[SWAP_UNUSED] && n[SWAP_UNUSED] <= n[SWAP_SIZE])
        source_put(s, values, METRIC_SWAP_USED, (double)(n[SWAP_SIZE] - n[SWAP_UNUSED]) * KIB);
    return 0;
}

static int memory_open(struct source *s)
{
    struct memory *m = calloc(1, sizeof *m);
    if (!m)
        return source_fail(s, -ENOMEM, "no memory");
    m->fields = (struct fields){.table = fields, .count = FIELDS};
    int failed = procfile_open(&m->file, s, "/proc/meminfo");
    if (failed) {
        free(m);
        return failed;
    }
    s->state = m;
    return 0;
}

static void memory_close(struct source *s)
{
    struct memory *m = s->state;
    procfile_close(&m->file);
    free(m);
}

const struct source_kind source_memory = {
    .name = {"memory", 6}, .open = memory_open, .sample = memory_sample, .close = memory_close};
