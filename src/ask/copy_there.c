#include "ask/copy_there.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char all_time[] = "0..9223372036854775807";

void ask_copy_range_text(int64_t from_ns, int64_t to_ns, char out[ASK_COPY_RANGE_MAX])
{
    snprintf(out, ASK_COPY_RANGE_MAX, "%lld..%lld", (long long)from_ns, (long long)to_ns);
}

bool ask_copy_is_of(const struct store_reader *r, struct str job)
{
    uint64_t version;
    return str_to_u64(store_reader_meta(r, STR("copied_version")), &version) &&
           (!job.size || str_eq(store_reader_meta(r, STR("job")), job));
}

static int note(const struct ask_copy_options *options, const char *name,
                const struct store_reader *r, struct arena *arena, struct ask_there *out)
{
    char range[ASK_COPY_RANGE_MAX];
    ask_copy_range_text(options->from_ns, options->to_ns, range);
    struct str its = store_reader_meta(r, STR("copied_range"));
    *out = (struct ask_there){.name = arena_str(arena, str_of(name)),
                              .from = arena_str(arena, store_reader_meta(r, STR("copied_from"))),
                              .ours = ask_copy_is_of(r, options->job),
                              .same_range = str_eq(its, str_of(range)),
                              .all_time = str_eq(its, str_of(all_time))};
    str_to_u64(store_reader_meta(r, STR("copied_file")), &out->file);
    return out->name.data && out->from.data ? 0 : -ENOMEM;
}

int ask_there_read(const struct ask_copy_options *options, struct arena *arena,
                   struct ask_there_list *out)
{
    DIR *dir = opendir(options->folder);
    *out = (struct ask_there_list){arena_array(arena, ASK_COPY_FILES_MAX, sizeof *out->files), 0};
    int status = !dir ? -errno : out->files ? 0 : -ENOMEM;
    for (struct dirent *d = dir ? readdir(dir) : NULL;
         d && status == 0 && out->count < ASK_COPY_FILES_MAX; d = readdir(dir)) {
        struct store_reader *r;
        char *path = NULL;
        if (!str_ends(str_of(d->d_name), STR(".sonde")))
            continue;
        if (asprintf(&path, "%s/%s", options->folder, d->d_name) < 0)
            status = -ENOMEM;
        else if (store_reader_open(path, &r, NULL) == 0) {
            status = note(options, d->d_name, r, arena, &out->files[out->count++]);
            store_reader_close(r);
        }
        free(path);
    }
    if (dir)
        closedir(dir);
    return status;
}

struct ask_there *ask_there_named(const struct ask_there_list *l, struct str name)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq(l->files[i].name, name))
            return &l->files[i];
    return NULL;
}

struct ask_there *ask_there_copy(const struct ask_there_list *l, struct str from, uint64_t file)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->files[i].ours && l->files[i].file == file && str_eq(l->files[i].from, from))
            return &l->files[i];
    return NULL;
}

// ---- sums ----

static bool is_requested(const struct ask_there *t, const struct str *hosts, size_t count)
{
    bool requested = count == 0;
    for (size_t i = 0; i < count && !requested; i++)
        requested = str_eq(hosts[i], t->from);
    return requested && t->ours && !t->spoiled;
}

static int sum_up(const char *path, const struct ask_copy_options *options, uint32_t slices,
                  const struct ask_copy_stop *stop, struct ask_copy_sums *sums, bool *sound,
                  struct error *e)
{
    struct store_reader *reader;
    if (store_reader_open(path, &reader, NULL) != 0)
        return -ESTALE;
    struct store_snapshot *store = store_snapshot_open(reader);
    int r = store ? ask_copy_sums_divide(store, options->from_ns, options->to_ns, slices, sums)
                  : -ENOMEM,
        stopped = 0;
    if (r == 0) {
        struct ask_copy_look look;
        ask_copy_look_begin(&look, store, options->from_ns, options->to_ns,
                            (uint32_t)store_metric_count(store),
                            (uint32_t)store_series_count(store), sums);
        while (stopped == 0 && (r = ask_copy_look_step(&look)) > 0)
            stopped = ask_copy_stopped(stop, e);
        ask_copy_look_end(&look);
    }
    struct store_damage damage;
    store_reader_damage(reader, &damage);
    *sound = damage.blocks == 0;
    store_snapshot_close(store);
    store_reader_close(reader);
    return stopped ? stopped : r == 0 || r == -ENOMEM ? r : -ESTALE;
}

int ask_there_sum_up(struct ask_there_list *l, const struct ask_copy_options *options,
                     const struct str *hosts, size_t host_count, const struct ask_copy_stop *stop,
                     struct arena *arena, struct error *e)
{
    enum { SLICE_BYTES = 26 };
    size_t requested = 0;
    int r = 0;
    for (size_t i = 0; i < l->count; i++) {
        l->files[i].sums = NULL;
        requested += is_requested(&l->files[i], hosts, host_count);
    }
    size_t slices = requested ? ASK_COPY_SUMS_BYTES / SLICE_BYTES / requested : 0;
    if (slices > ASK_COPY_SLICES_MAX)
        slices = ASK_COPY_SLICES_MAX;
    for (size_t i = 0; i < l->count && r == 0 && slices; i++) {
        struct ask_there *t = &l->files[i];
        if (!is_requested(t, hosts, host_count))
            continue;
        struct ask_copy_sums *sums = arena_alloc(arena, sizeof *sums);
        char *path = arena_printf(arena, "%s/%.*s", options->folder, STR_ARG(t->name));
        r = sums && path ? sum_up(path, options, (uint32_t)slices, stop, sums, &t->sound, e)
                         : -ENOMEM;
        t->sums = r ? NULL : sums;
        r = r == -ESTALE ? 0 : r;
    }
    return r == -ENOMEM ? error_set(e, r, "no memory for a copy") : r;
}

int ask_there_known(const struct ask_there_list *l, struct arena *arena,
                    const struct ask_copy_known **out, size_t *count)
{
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++)
        n += l->files[i].sums != NULL;
    struct ask_copy_known *known = arena_array(arena, n, sizeof *known);
    if (!known)
        return -ENOMEM;
    *out = known;
    *count = n;
    for (size_t i = 0; i < l->count; i++) {
        const struct ask_there *t = &l->files[i];
        struct buf sums = {0};
        if (!t->sums)
            continue;
        ask_copy_sums_write(t->sums, &sums);
        *known = (struct ask_copy_known){.host = t->from,
                                         .file = t->file,
                                         .exact = t->same_range && t->sound,
                                         .sums = arena_str(arena, buf_str(&sums))};
        bool failed = sums.failed || !known->sums.data;
        buf_free(&sums);
        if (failed)
            return -ENOMEM;
        known++;
    }
    return 0;
}
