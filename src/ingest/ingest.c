// ingest.c - creates and destroys the ingest, and drains all programs in one round.
#include "base/hash.h"
#include "ingest/ingest_internal.h"

#include <errno.h>
#include <stdlib.h>

enum { CLOCK_SETTLE_MS = 1 };

static bool copy_labels(struct ingest *in, const struct store_label *labels, size_t count)
{
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += labels[i].key.size + labels[i].value.size;
    char *at = in->label_text = malloc(size);
    if (!at)
        return false;
    for (size_t i = 0; i < count; i++) {
        in->labels[i] = (struct store_label){{at, labels[i].key.size},
                                             {at + labels[i].key.size, labels[i].value.size}};
        memcpy(at, labels[i].key.data, labels[i].key.size);
        memcpy(at + labels[i].key.size, labels[i].value.data, labels[i].value.size);
        at += labels[i].key.size + labels[i].value.size;
    }
    in->label_count = count;
    return true;
}

int ingest_create(struct store *store, const struct ingest_options *options, struct ingest **out,
                  struct error *e)
{
    *out = NULL;
    if (options->label_count > STORE_LABELS_MAX)
        return error_set(e, -E2BIG, "more than %d labels for all series", STORE_LABELS_MAX);
    struct ingest *in = calloc(1, sizeof *in);
    if (!in)
        return error_set(e, -ENOMEM, "no memory for the ingest");
    in->store = store;
    in->level = options->level;
    in->programs_max = options->programs_max ? options->programs_max : INGEST_PROGRAMS_MAX_DEFAULT;
    in->recorded = options->recorded;
    in->open_spans = options->open_spans;
    in->recorded_user = options->recorded_user;
    in->keep = options->keep;
    in->forget = options->forget;
    in->keep_user = options->keep_user;
    in->recording = options->socket_path
                        ? hash_bytes(options->socket_path, strlen(options->socket_path), 0)
                        : 0;
    in->began = accounts_stamp(in);
    in->turns = 1;
    in->turns_taken = calloc(in->programs_max, sizeof *in->turns_taken);
    in->points = malloc(INGEST_BATCH_POINTS * sizeof *in->points);
    in->socket_path = options->socket_path ? strdup(options->socket_path) : NULL;
    if (!in->points || !in->turns_taken ||
        !copy_labels(in, options->labels, options->label_count) ||
        (options->socket_path && !in->socket_path)) {
        ingest_destroy(in);
        return error_set(e, -ENOMEM, "no memory for the ingest");
    }
    clock_fit_start(&in->fit, CLOCK_SETTLE_MS);
    in->checked_at_ns = clock_monotonic_ns();
    *out = in;
    return 0;
}

void ingest_destroy(struct ingest *in)
{
    if (!in)
        return;
    for (size_t i = 0; i < in->program_count; i++)
        program_look(in->programs[i]); // this also closes the spans of ended programs
    in->closing = true;
    if (in->points)
        ingest_drain(in, NULL);
    for (size_t i = 0; i < in->program_count; i++)
        program_free(in, in->programs[i]);
    open_spans_end(in, &in->line_spans, clock_realtime_ns());
    open_spans_free(in, &in->recorded_spans);
    if (in->lines_free)
        in->lines_free(in);
    free(in->programs);
    free(in->points);
    free(in->socket_path);
    free(in->label_text);
    free(in->accumulator_of);
    free(in->definers);
    free(in->turns_taken);
    free(in->accumulators);
    free(in);
}

bool ingest_labels(const struct ingest *in, const struct program *p, const struct store_label *own,
                   size_t own_count, struct store_label *out, size_t *count)
{
    const struct store_label *from[] = {in->labels, own, p ? p->tags : NULL};
    size_t sizes[] = {in->label_count, own_count, p ? p->tag_count : 0};
    size_t n = 0;
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; i < sizes[f]; i++) {
            bool known = false;
            for (size_t j = 0; j < n && !known; j++)
                known = str_eq(out[j].key, from[f][i].key);
            if (known)
                continue;
            if (n == STORE_LABELS_MAX)
                return false;
            out[n++] = from[f][i];
        }
    }
    *count = n;
    return true;
}

size_t ingest_drain(struct ingest *in, double *fullest)
{
    double full = 0;
    int64_t now = clock_monotonic_ns();
    struct clock_reading reading;
    clock_read_together(&reading);
    clock_fit_take(&in->fit, &reading);
    if (now - in->checked_at_ns >= NS_PER_S) {
        in->checked_at_ns = now;
        for (size_t i = 0; i < in->program_count; i++)
            program_look(in->programs[i]);
    }
    size_t points = 0;
    // Before any point is stored, read all definitions up to the heads and give every program its
    // turn. Then all shared series are known.
    for (size_t i = 0; i < in->program_count; i++)
        program_read_heads(in, in->programs[i]);
    for (size_t i = 0; i < in->program_count; i++)
        program_definitions(in, in->programs[i]);
    for (size_t i = 0; i < in->program_count; i++)
        turns_take(in, in->programs[i]);
    // The agent has noticed the end of these programs before it read their rings, so it has read
    // all their records.
    for (size_t i = 0; i < in->program_count; i++)
        points += program_drain(in, in->programs[i], &full);
    points += programs_gone(in);
    if (fullest)
        *fullest = full;
    return points;
}

size_t ingest_sample_cells(struct ingest *in, int64_t t_ns)
{
    return cells_sample(in, t_ns, CELLS_ALL);
}

void ingest_get_stats(const struct ingest *in, struct ingest_stats *out)
{
    *out = in->stats;
    out->programs = in->program_count;
}
