// vmstat.c - /proc/vmstat: memory management: faults, paging, swapping, pages from far NUMA nodes,
// out-of-memory kills.
#include "collect/fields.h"
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { KIB = 1024 };

#define COUNT(name, row, scale)                       \
    {                                                 \
        {name " ", sizeof name}, METRIC_##row, scale, \
        {                                             \
            "", 0                                     \
        }                                             \
    }

enum { PAGES = -1 }; // a scale: the page size

static const struct field fields[] = {
    COUNT("numa_hit", NUMA_HITS, 1),
    COUNT("numa_miss", NUMA_MISSES, 1),
    COUNT("numa_foreign", NUMA_FOREIGN, 1),
    COUNT("numa_local", NUMA_LOCAL, 1),
    COUNT("numa_other", NUMA_OTHER, 1),
    COUNT("pgpgin", PAGED_IN, KIB),
    COUNT("pgpgout", PAGED_OUT, KIB),
    COUNT("pswpin", SWAPPED_IN, PAGES),
    COUNT("pswpout", SWAPPED_OUT, PAGES),
    COUNT("pgfault", PAGE_FAULTS, 1),
    COUNT("pgmajfault", PAGE_FAULTS_MAJOR, 1),
    COUNT("pgsteal_kswapd", RECLAIMED_BACKGROUND, PAGES),
    COUNT("pgsteal_direct", RECLAIMED_DIRECT, PAGES),
    COUNT("pgscan_kswapd", SCANNED_BACKGROUND, PAGES),
    COUNT("pgscan_direct", SCANNED_DIRECT, PAGES),
    COUNT("workingset_refault_anon", REFAULTS_ANONYMOUS, 1),
    COUNT("workingset_refault_file", REFAULTS_FILE, 1),
    COUNT("pgfree", PAGES_FREED, PAGES),
    COUNT("pgmigrate_success", PAGES_MOVED, PAGES),
    COUNT("thp_split_page", HUGE_SPLITS, 1),
    COUNT("thp_collapse_alloc", HUGE_COLLAPSES, 1),
    COUNT("numa_hint_faults", NUMA_HINT_FAULTS, 1),
    COUNT("numa_hint_faults_local", NUMA_HINT_FAULTS_LOCAL, 1),
    COUNT("oom_kill", OOM_KILLS, 1),
    COUNT("numa_pages_migrated", NUMA_MIGRATED, PAGES),
    COUNT("compact_stall", COMPACTION_STALLS, 1),
    COUNT("thp_fault_alloc", HUGE_FAULTS, 1),
    COUNT("thp_fault_fallback", HUGE_FALLBACKS, 1),
};

enum { FIELDS = sizeof fields / sizeof *fields };

struct vmstat {
    struct procfile file;
    struct field table[FIELDS];
    struct fields fields;
};

static int vmstat_sample(struct source *s, double *values)
{
    struct vmstat *v = s->state;
    struct str text;
    int failed = procfile_read(&v->file, s, &text);
    if (failed)
        return failed;
    if (fields_read(&v->fields, text) == 0)
        return source_fail(s, -EBADMSG, "/proc/vmstat holds no counts that are known");
    fields_put(&v->fields, s, values);
    return 0;
}

static int vmstat_open(struct source *s)
{
    struct vmstat *v = calloc(1, sizeof *v);
    if (!v)
        return source_fail(s, -ENOMEM, "no memory");
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < FIELDS; i++) {
        v->table[i] = fields[i];
        if (v->table[i].scale < 0)
            v->table[i].scale = page > 0 ? (double)page : 4096;
    }
    v->fields = (struct fields){.table = v->table, .count = FIELDS};
    int failed = procfile_open(&v->file, s, "/proc/vmstat");
    if (failed) {
        free(v);
        return failed;
    }
    s->state = v;
    return 0;
}

static void vmstat_close(struct source *s)
{
    struct vmstat *v = s->state;
    procfile_close(&v->file);
    free(v);
}

const struct source_kind source_vmstat = {
    .name = {"vmstat", 6}, .open = vmstat_open, .sample = vmstat_sample, .close = vmstat_close};
