// gather_traced.c - the data that `sonde run --trace` has recorded. It requests totals only, which
// the server sums up, because each rank has series of its own for each file and each operation.
#include "base/array.h"
#include "report/gather.h"

#include <errno.h>
#include <stdlib.h>

// These counters begin at 0 with the program, so their largest value is their total.
static const char *const expressions[] = {
    "sum:0all-max:io_file_bytes{file=*,op=*}",
    "sum:0all-max:io_file_calls{file=*,op=*}",
    "max:0all-max:io_file_seconds{file=*}",
    "sum:0all-max:mpi_collective_seconds{comm=*,rank=*}",
    // Of these, no rank ends before the last one has begun.
    "sum:0all-max:nccl_seconds{comm=*,rank=*}"
    "{op=literal_or(AllReduce|AllGather|ReduceScatter|AllToAll)}",
};
enum { BYTES, CALLS, SECONDS, MPI_COLLECTIVES, NCCL_COLLECTIVES, EXPRESSIONS };
static const char *const metrics[EXPRESSIONS] = {[BYTES] = "io_file_bytes",
                                                 [CALLS] = "io_file_bytes",
                                                 [SECONDS] = "io_file_bytes",
                                                 [MPI_COLLECTIVES] = "mpi_collective_seconds",
                                                 [NCCL_COLLECTIVES] = "nccl_seconds"};

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

static struct str tag_of(const struct sonde_series *s, const char *key)
{
    for (size_t i = 0; i < s->tag_count; i++)
        if (strcmp(s->tags[i].key, key) == 0)
            return str_of(s->tags[i].value);
    return (struct str){0};
}

struct rows {
    struct report_file *files;
    size_t count, capacity;
    struct report_waiting *waiting;
    size_t waiting_count, waiting_capacity;
};

static struct report_file *file_of(struct gather *g, struct rows *rows, struct str path)
{
    for (size_t i = rows->count; i-- > 0;)
        if (str_eq(rows->files[i].path, path))
            return &rows->files[i];
    if (!array_room(&rows->files, &rows->capacity, rows->count + 1, sizeof *rows->files))
        return NULL;
    rows->files[rows->count] = (struct report_file){.path = arena_str(g->arena, path)};
    return &rows->files[rows->count++];
}

static bool take(struct gather *g, struct rows *rows, size_t query, const struct sonde_series *s)
{
    double value = s->count ? s->values[0] : 0;
    if (query == MPI_COLLECTIVES || query == NCCL_COLLECTIVES) {
        if (!array_room(&rows->waiting, &rows->waiting_capacity, rows->waiting_count + 1,
                        sizeof *rows->waiting))
            return false;
        rows->waiting[rows->waiting_count++] =
            (struct report_waiting){.library = query == NCCL_COLLECTIVES ? REPORT_NCCL : REPORT_MPI,
                                    .rank = arena_str(g->arena, tag_of(s, "rank")),
                                    .comm = arena_str(g->arena, tag_of(s, "comm")),
                                    .seconds = value};
        return true;
    }
    struct report_file *file = file_of(g, rows, tag_of(s, "file"));
    if (!file)
        return false;
    if (query == SECONDS)
        file->seconds = value;
    else if (query == CALLS)
        file->calls += value;
    else if (str_eq(tag_of(s, "op"), STR("write")))
        file->written += value;
    else
        file->read += value;
    return true;
}

int gather_traced(struct gather *g)
{
    struct report *r = g->report;
    struct sonde_result *result = NULL;
    const char *available[EXPRESSIONS];
    size_t query_of[EXPRESSIONS], count = 0;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        if (!gather_metric(g, metrics[i]))
            continue;
        query_of[count] = i;
        available[count++] = expressions[i];
    }
    if (!count)
        return 0;
    int rc = gather_ask(g, available, count, NULL, r->first_ns, r->to_ns, &result);
    if (rc == -EFBIG || rc == -ETIME || rc == -ETIMEDOUT || rc == -EBUSY || rc == -EINVAL) {
        gather_note_missing(g, "traced files and collectives");
        return 0;
    }
    struct rows rows = {0};
    for (size_t i = 0; !rc && i < result->count; i++)
        if (!take(g, &rows, query_of[result->queries ? result->queries[i] : 0], &result->series[i]))
            rc = error_set(g->e, -ENOMEM, "no memory");
    sonde_result_free(result);
    struct report_file *files = arena_array(g->arena, rows.count, sizeof *files);
    struct report_waiting *waiting = arena_array(g->arena, rows.waiting_count, sizeof *waiting);
    if (files && rows.count) {
        memcpy(files, rows.files, rows.count * sizeof *files);
        r->files = files;
        r->file_count = rows.count;
    }
    if (waiting && rows.waiting_count) {
        memcpy(waiting, rows.waiting, rows.waiting_count * sizeof *waiting);
        r->waiting = waiting;
        r->waiting_count = rows.waiting_count;
    }
    free(rows.files);
    free(rows.waiting);
    return rc;
}
