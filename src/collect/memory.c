// memory.c - /proc/meminfo: "MemTotal:       24684084 kB", one name a line.
//
// Lines are found by name, wherever they stand. The table is in the order of today's kernels, and a search begins behind the last hit: a line is
// mostly found, or known to be of no interest, at the first look.
#include "collect/procfile.h"

#include <errno.h>
#include <stdlib.h>

enum { KIB = 1024 };

enum field { TOTAL, FREE, AVAILABLE, BUFFERS, CACHED, SWAP_SIZE, SWAP_UNUSED, DIRTY, SHARED, SLAB, FIELDS };

static const struct {
    struct str name;
    enum metric_symbol row;
} fields[FIELDS] = {
    [TOTAL] = {{"MemTotal", 8}, METRIC_MEMORY_TOTAL},
    [FREE] = {{"MemFree", 7}, METRIC_MEMORY_FREE},
    [AVAILABLE] = {{"MemAvailable", 12}, METRIC_MEMORY_AVAILABLE},
    [BUFFERS] = {{"Buffers", 7}, METRIC_MEMORY_BUFFERS},
    [CACHED] = {{"Cached", 6}, METRIC_MEMORY_CACHED},
    [SWAP_SIZE] = {{"SwapTotal", 9}, METRIC_SWAP_TOTAL},
    [SWAP_UNUSED] = {{"SwapFree", 8}, METRIC_SWAP_FREE},
    [DIRTY] = {{"Dirty", 5}, METRIC_MEMORY_DIRTY},
    [SHARED] = {{"Shmem", 5}, METRIC_MEMORY_SHARED},
    [SLAB] = {{"Slab", 4}, METRIC_MEMORY_SLAB},
};

static int memory_sample(struct source *s, double *values)
{
    struct str rest, line;
    int failed = procfile_read(s->state, s, &rest);
    if (failed)
        return failed;
    double bytes[FIELDS];
    bool have[FIELDS] = {false};
    size_t found = 0, next = 0;
    while (found < FIELDS && scan_line(&rest, &line)) {
        ptrdiff_t colon = str_find_char(line, ':');
        if (colon <= 0)
            continue;
        struct str name = str_slice(line, 0, (size_t)colon);
        for (size_t tried = 0; tried < FIELDS; tried++) {
            size_t field = (next + tried) % FIELDS;
            if (!str_eq(name, fields[field].name))
                continue;
            struct str number = str_slice(line, (size_t)colon + 1, line.size);
            uint64_t kib;
            if (!have[field] && scan_u64(&number, &kib) && str_eq(str_trim(number), STR("kB"))) {
                bytes[field] = (double)kib * KIB;
                have[field] = true;
                source_put(s, values, fields[field].row, bytes[field]);
                found++;
            }
            next = field + 1;
            break;
        }
    }
    if (have[TOTAL] && have[AVAILABLE] && bytes[AVAILABLE] <= bytes[TOTAL]) {
        source_put(s, values, METRIC_MEMORY_USED, bytes[TOTAL] - bytes[AVAILABLE]);
        if (bytes[TOTAL] > 0)
            source_put(s, values, METRIC_MEMORY_USED_PERCENT, 100 * (1 - bytes[AVAILABLE] / bytes[TOTAL]));
    }
    if (have[SWAP_SIZE] && have[SWAP_UNUSED] && bytes[SWAP_UNUSED] <= bytes[SWAP_SIZE])
        source_put(s, values, METRIC_SWAP_USED, bytes[SWAP_SIZE] - bytes[SWAP_UNUSED]);
    return found ? 0 : source_fail(s, -EBADMSG, "/proc/meminfo does not hold sizes of memory");
}

static int memory_open(struct source *s)
{
    struct procfile *file = malloc(sizeof *file);
    if (!file)
        return source_fail(s, -ENOMEM, "no memory");
    int failed = procfile_open(file, s, "/proc/meminfo");
    if (failed) {
        free(file);
        return failed;
    }
    s->state = file;
    return 0;
}

static void memory_close(struct source *s)
{
    procfile_close(s->state);
    free(s->state);
}

const struct source_kind source_memory = {{"memory", 6}, memory_open, memory_sample, memory_close};
