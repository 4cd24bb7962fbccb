// gather_traced.c - the data that `sonde run --trace` has recorded. It requests totals only, which
// the server sums up, because each rank has series of its own for each file and each operation.
#include "base/array.h"
#include "report/gather.h"

#include <errno.h>
#include <stdlib.h>

// The requests. These counters begin at 0 with the program, so their largest value is their total.
enum {
    BYTES,
    CALLS,
    SECONDS,
    MPI_COLLECTIVES,
    NCCL_COLLECTIVES,
    KERNELS,
    KERNEL_SECONDS,
    PAGEABLE_BYTES,
    PAGEABLE_SECONDS,
    REQUESTS
};
static const struct {
    const char *metric, *expression;
} requests[REQUESTS] = {
    [BYTES] = {"io_file_bytes", "sum:0all-max:io_file_bytes{file=*,op=*}"},
    [CALLS] = {"io_file_bytes", "sum:0all-max:io_file_calls{file=*,op=*}"},
    [SECONDS] = {"io_file_bytes", "max:0all-max:io_file_seconds{file=*}"},
    [MPI_COLLECTIVES] = {"mpi_collective_seconds",
                         "sum:0all-max:mpi_collective_seconds{comm=*,rank=*}"},
    // Of these, no rank ends before the last one has begun.
    [NCCL_COLLECTIVES] = {"nccl_seconds",
                          "sum:0all-max:nccl_seconds{comm=*,rank=*}"
                          "{op=literal_or(AllReduce|AllGather|ReduceScatter|AllToAll)}"},
    [KERNELS] = {"cuda_kernels", "sum:0all-max:cuda_kernels{kernel=*}"},
    [KERNEL_SECONDS] = {"cuda_kernels", "sum:0all-max:cuda_kernel_seconds{kernel=*}"},
    [PAGEABLE_BYTES] = {"cuda_copy_bytes",
                        "sum:0all-max:cuda_copy_bytes{direction=*,memory=pageable}"},
    [PAGEABLE_SECONDS] = {"cuda_copy_bytes",
                          "max:0all-max:cuda_copy_seconds{direction=*,memory=pageable}"},
};

// These metrics do not count as the user's own.
static const char *const names[] = {"io_calls",
                                    "io_bytes",
                                    "io_seconds",
                                    "io_file_calls",
                                    "io_file_bytes",
                                    "io_file_seconds",
                                    "io_uncounted_calls",
                                    "mpi_calls",
                                    "mpi_bytes",
                                    "mpi_seconds",
                                    "mpi_collective_seconds"};

bool gather_is_traced(struct str name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return false;
}

bool gather_is_of_tracer(struct str name)
{
    static const char *const prefixes[] = {"cuda_",   "nccl_", "nvtx_",  "roctx_",
                                           "kokkos_", "omp_",  "python_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (str_starts(name, str_of(prefixes[i])))
            return true;
    return false;
}

struct rows {
    struct report_file *files;
    struct report_waiting *waiting;
    struct report_kernel *kernels;
    struct report_copies *pageables;
    size_t file_count, file_capacity, waiting_count, waiting_capacity, kernel_count,
        kernel_capacity, pageable_count, pageable_capacity;
};

// Returns the row with this text, which is the first member of each row; appends it if there is
// none. NULL without memory.
static void *row_of(struct gather *g, void *rows, size_t *count, size_t *capacity, size_t size,
                    struct str text)
{
    char *all;
    memcpy(&all, rows, sizeof all);
    for (size_t i = *count; i-- > 0;)
        if (str_eq(*(struct str *)(void *)(all + i * size), text))
            return all + i * size;
    if (!array_room_zeroed(rows, capacity, *count + 1, size))
        return NULL;
    memcpy(&all, rows, sizeof all);
    struct str *row = (struct str *)(void *)(all + (*count)++ * size);
    *row = arena_str(g->arena, text);
    return row;
}

#define ROW(rows, name, text)                                                    \
    row_of(g, &(rows)->name##s, &(rows)->name##_count, &(rows)->name##_capacity, \
           sizeof *(rows)->name##s, text)

static bool take_waiting(struct gather *g, struct rows *rows, size_t query,
                         const struct sonde_series *s, double value)
{
    if (!array_room(&rows->waiting, &rows->waiting_capacity, rows->waiting_count + 1,
                    sizeof *rows->waiting))
        return false;
    rows->waiting[rows->waiting_count++] =
        (struct report_waiting){.library = query == NCCL_COLLECTIVES ? REPORT_NCCL : REPORT_MPI,
                                .rank = arena_str(g->arena, gather_tag(s, "rank")),
                                .comm = arena_str(g->arena, gather_tag(s, "comm")),
                                .seconds = value};
    return true;
}

static bool take_file(struct gather *g, struct rows *rows, size_t query,
                      const struct sonde_series *s, double value)
{
    struct report_file *file = ROW(rows, file, gather_tag(s, "file"));
    if (!file)
        return false;
    if (query == SECONDS)
        file->seconds = value;
    else if (query == CALLS)
        file->calls += value;
    else if (str_eq(gather_tag(s, "op"), STR("write")))
        file->written += value;
    else
        file->read += value;
    return true;
}

static bool take(struct gather *g, struct rows *rows, size_t query, const struct sonde_series *s)
{
    double value = s->count ? s->values[0] : 0;
    if (query == MPI_COLLECTIVES || query == NCCL_COLLECTIVES)
        return take_waiting(g, rows, query, s, value);
    if (query == KERNELS || query == KERNEL_SECONDS) {
        struct report_kernel *kernel = ROW(rows, kernel, gather_tag(s, "kernel"));
        if (kernel)
            *(query == KERNELS ? &kernel->count : &kernel->seconds) = value;
        return kernel != NULL;
    }
    if (query == PAGEABLE_BYTES || query == PAGEABLE_SECONDS) {
        struct report_copies *copies = ROW(rows, pageable, gather_tag(s, "direction"));
        if (copies)
            *(query == PAGEABLE_BYTES ? &copies->bytes : &copies->seconds) = value;
        return copies != NULL;
    }
    return take_file(g, rows, query, s, value);
}

static int longest_first(const void *a, const void *b)
{
    const struct report_kernel *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return str_compare_natural(x->name, y->name);
}

static void *keep(struct gather *g, const void *rows, size_t *count, size_t size)
{
    void *kept = *count ? arena_array(g->arena, *count, size) : NULL;
    if (kept)
        memcpy(kept, rows, *count * size);
    else
        *count = 0;
    return kept;
}

static void keep_all(struct gather *g, struct rows *rows)
{
    struct report *r = g->report;
    if (rows->kernel_count)
        qsort(rows->kernels, rows->kernel_count, sizeof *rows->kernels, longest_first);
    r->files = keep(g, rows->files, &rows->file_count, sizeof *rows->files);
    r->waiting = keep(g, rows->waiting, &rows->waiting_count, sizeof *rows->waiting);
    r->kernels = keep(g, rows->kernels, &rows->kernel_count, sizeof *rows->kernels);
    r->pageable = keep(g, rows->pageables, &rows->pageable_count, sizeof *rows->pageables);
    r->file_count = rows->file_count;
    r->waiting_count = rows->waiting_count;
    r->kernel_count = rows->kernel_count;
    r->pageable_count = rows->pageable_count;
    free(rows->files);
    free(rows->waiting);
    free(rows->kernels);
    free(rows->pageables);
}

int gather_traced(struct gather *g)
{
    struct report *r = g->report;
    struct sonde_result *result = NULL;
    const char *expressions[REQUESTS];
    size_t query_of[REQUESTS], count = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        if (!gather_metric(g, requests[i].metric))
            continue;
        query_of[count] = i;
        expressions[count++] = requests[i].expression;
    }
    if (!count)
        return 0;
    int rc = gather_ask(g, expressions, count, NULL, r->first_ns, r->to_ns, &result);
    if (gather_is_too_much(rc)) {
        gather_note_missing(g, "what was traced");
        return 0;
    }
    struct rows rows = {0};
    for (size_t i = 0; !rc && i < result->count; i++)
        if (!take(g, &rows, query_of[result->queries ? result->queries[i] : 0], &result->series[i]))
            rc = error_set(g->e, -ENOMEM, "no memory");
    sonde_result_free(result);
    keep_all(g, &rows);
    return rc;
}
