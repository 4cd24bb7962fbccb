// findings_traced.c - findings from `sonde run --trace`: the rank that the others wait for, and the
// largest file. They do not need a long run, because each threshold is a time or an amount.
#include "report/findings.h"
#include "report/words.h"

#include <stdlib.h>

static const double waited_least_s = 1;
static const double waited_least_share = 0.05; // share of the run
// if the second rank waits at least this share of the median's waiting time, only one rank is late
static const double alone_share = 0.5;
static const double file_least_bytes = 256.0 * (1 << 20);
// share of the run, for the rank that spends most time on the file
static const double file_least_share = 0.05;
static const double small_call_bytes = 64.0 * (1 << 10);

static int by_seconds(const void *a, const void *b)
{
    const struct report_waiting *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return str_compare_natural(x->rank, y->rank);
}

// What the finding says of a library.
static const struct {
    const char *kind, *name;
    struct str between;     // the advice
    const char *expression; // for the communicator
} libraries[] = {
    [REPORT_MPI] = {"mpi_waiting", "MPI",
                    STR("See what this rank does between collectives: more work than the others, a "
                        "slower node or GPU (sonde detect), files, output."),
                    "none:0all-max:mpi_collective_seconds{comm=%.*s,rank=*}"},
    [REPORT_NCCL] = {"nccl_waiting", "NCCL",
                     STR("See what this rank does between collectives: more work than the others, "
                         "a slower GPU or node (sonde detect, clocks, temperatures), data that "
                         "arrive late."),
                     "none:0all-max:nccl_seconds{comm=%.*s,op=*,rank=*}"}};

// Sorts the times of the ranks in the communicator of `first`. Returns the number of ranks.
static size_t ranks_of(struct report *r, const struct report_waiting *first,
                       struct report_waiting **out)
{
    struct report_waiting *ranks = arena_array(r->arena, r->waiting_count, sizeof *ranks);
    size_t count = 0;
    for (size_t i = 0; ranks && i < r->waiting_count; i++) {
        const struct report_waiting *w = &r->waiting[i];
        if (w->library == first->library && str_eq(w->comm, first->comm) && w->rank.size)
            ranks[count++] = *w;
    }
    if (count)
        qsort(ranks, count, sizeof *ranks, by_seconds);
    *out = ranks;
    return count;
}

// A communicator without a name is "size-8". If more ranks have recorded it, there are several of
// this size, which do not wait for each other.
static bool is_one(struct str comm, size_t ranks)
{
    uint64_t size;
    struct str prefix = STR("size-");
    return !str_starts(comm, prefix) ||
           !str_to_u64(str_slice(comm, prefix.size, comm.size), &size) || ranks <= size;
}

static void judge_communicator(struct report *r, const struct report_waiting *first)
{
    struct report_waiting *ranks;
    size_t count = ranks_of(r, first, &ranks);
    if (count < 2 || !is_one(first->comm, count))
        return;
    // The upper median, so that with two ranks one waits for the other.
    double waited = ranks[count / 2].seconds - ranks[0].seconds, share = waited / report_seconds(r);
    if (waited < waited_least_s || share < waited_least_share)
        return;
    bool alone = ranks[1].seconds - ranks[0].seconds >= alone_share * waited;
    struct report_finding *f = finding_add(r, libraries[first->library].kind,
                                           alone ? REPORT_SURE : REPORT_LIKELY, fmin(share, 1));
    if (!f)
        return;
    f->title = finding_text(r, "%s's collectives wait for rank %.*s: %.*s, %.0f %% of the run",
                            libraries[first->library].name, STR_ARG(ranks[0].rank),
                            STR_ARG(finding_duration(r, waited)), share * 100);
    f->evidence = finding_text(
        r, "time in collectives: rank %.*s %s s, the next one (rank %.*s) %s s, median %s s",
        STR_ARG(ranks[0].rank), words_number(ranks[0].seconds).text, STR_ARG(ranks[1].rank),
        words_number(ranks[1].seconds).text, words_number(ranks[count / 2].seconds).text);
    f->advice = alone ? libraries[first->library].between
                      : STR("Divide the work evenly: several ranks come late to the collectives.");
    f->value = waited;
    f->unit = "seconds";
    f->member = finding_text(r, "rank=%.*s", STR_ARG(ranks[0].rank));
    f->m = finding_text(r, libraries[first->library].expression, STR_ARG(first->comm));
}

void find_awaited_rank(struct report *r)
{
    for (size_t i = 0; i < r->waiting_count; i++) {
        const struct report_waiting *w = &r->waiting[i];
        bool judged = false;
        for (size_t k = 0; k < i && !judged; k++)
            judged = r->waiting[k].library == w->library && str_eq(r->waiting[k].comm, w->comm);
        // MPI's other communicators consist of the same ranks.
        if (!judged && (w->library == REPORT_NCCL || str_eq(w->comm, STR("world"))))
            judge_communicator(r, w);
    }
}

void find_pageable_copies(struct report *r)
{
    for (size_t i = 0; i < r->pageable_count; i++) {
        const struct report_copies *c = &r->pageable[i];
        double share = c->seconds / report_seconds(r);
        if (c->seconds < waited_least_s || share < waited_least_share)
            continue;
        struct report_finding *f = finding_add(r, "cuda_pageable", REPORT_LIKELY, fmin(share, 1));
        if (!f)
            return;
        f->title = finding_text(r, "copies %s take %.*s, %.0f %% of the run",
                                str_eq(c->direction, STR("host to device"))
                                    ? "from pageable memory to GPUs"
                                    : "from GPUs to pageable memory",
                                STR_ARG(finding_duration(r, c->seconds)), share * 100);
        f->evidence = finding_text(r, "%.*s over all ranks; the time is the longest of a rank",
                                   STR_ARG(finding_bytes(r, c->bytes)));
        f->advice = STR("Copy from and to pinned memory (PyTorch: pin_memory=True of the "
                        "DataLoader, and non_blocking=True): such copies are faster, and kernels "
                        "run meanwhile.");
        f->value = c->seconds;
        f->unit = "seconds";
        f->m = finding_text(r, "none:0all-max:cuda_copy_seconds{direction=%.*s,memory=pageable}",
                            STR_ARG(c->direction));
    }
}

void find_largest_file(struct report *r)
{
    const struct report_file *top = NULL;
    double all = 0;
    for (size_t i = 0; i < r->file_count; i++) {
        const struct report_file *file = &r->files[i];
        all += file->read + file->written;
        if (!str_eq(file->path, STR("other")) &&
            (!top || file->read + file->written > top->read + top->written))
            top = file;
    }
    if (!top)
        return;
    double bytes = top->read + top->written, share = top->seconds / report_seconds(r),
           each = top->calls > 0 ? bytes / top->calls : 0;
    if (bytes < file_least_bytes && share < file_least_share)
        return;
    struct report_finding *f = finding_add(
        r, "io_file", share >= file_least_share ? REPORT_LIKELY : REPORT_POSSIBLE, fmin(share, 1));
    if (!f)
        return;
    f->title =
        finding_text(r, "largest file: %.*s, %.*s read, %.*s written", STR_ARG(top->path),
                     STR_ARG(finding_bytes(r, top->read)), STR_ARG(finding_bytes(r, top->written)));
    f->evidence =
        finding_text(r,
                     "%.0f calls of %.*s on average; %.0f %% of the bytes of all files; %s s "
                     "in calls of one rank or program, %.0f %% of the run",
                     top->calls, STR_ARG(finding_bytes(r, each)), bytes / all * 100,
                     words_number(top->seconds).text, share * 100);
    f->advice = each < small_call_bytes
                    ? STR("Read and write it in larger blocks: a call should move 1 MiB or more.")
                    : STR("If the run waits for it: fewer or smaller copies, a faster file system, "
                          "a thread beside the work.");
    f->value = bytes;
    f->unit = "bytes";
    f->m = STR("sum:0all-max:io_file_bytes{file=*,op=*}");
}
