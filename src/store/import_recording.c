#include "store/import_recording.h"

#include <errno.h>
#include <sys/stat.h>

int import_recording_create(const char *path, struct str host, struct str job, struct store **out,
                            struct error *e)
{
    struct stat st;
    struct store_label meta[] = {
        {STR("host"), host}, {STR("source"), STR("import")}, {STR("job"), job}};
    struct store_options o = {.size_limit_bytes = UINT64_MAX,
                              .close_budget_ns = INT64_MAX,
                              .meta = meta,
                              .meta_count = sizeof meta / sizeof *meta - !job.size,
                              .new_file = true};
    if (lstat(path, &st) == 0)
        return error_set(e, -EEXIST, "%s already exists; remove it or choose another folder", path);
    return store_open(path, &o, out, e);
}
