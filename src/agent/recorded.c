// recorded.c - keeps a snapshot of the file from before this agent's first append. It reads only
// the list of series in advance, and all other data on demand.
#include "agent/recorded.h"

#include "base/log.h"
#include "store/read.h"

#include <errno.h>
#include <stdlib.h>

struct recorded {
    struct store_reader *reader;
    struct store_snapshot *snapshot;
};

struct recorded *recorded_open(const char *path)
{
    struct error e = {.code = -ENOMEM};
    struct recorded *r = calloc(1, sizeof *r);
    if (r && store_reader_open(path, &r->reader, &e) == 0)
        r->snapshot = store_snapshot_open(r->reader);
    if (r && r->snapshot)
        return r;
    recorded_close(r);
    log_warning("counters begin anew, as the last values in %s cannot be read: %s", path,
                e.text[0] ? e.text : strerror(ENOMEM));
    return NULL;
}

void recorded_close(struct recorded *r)
{
    if (!r)
        return;
    if (r->snapshot)
        store_snapshot_close(r->snapshot);
    if (r->reader)
        store_reader_close(r->reader);
    free(r);
}

bool recorded_last(void *user, uint32_t series, double *value)
{
    struct recorded *r = user;
    int64_t t_ns;
    return r && store_point_before(r->snapshot, series, INT64_MAX, &t_ns, value);
}

void recorded_events(void *user, bool (*each)(const struct store_event *event, void *each_user),
                     void *each_user)
{
    struct recorded *r = user;
    int failed = r ? store_events(r->snapshot, INT64_MIN, INT64_MAX, each, each_user) : 0;
    if (failed)
        log_warning(
            "spans of programs that are killed stay open, as the recorded ones cannot be read: %s",
            strerror(-failed));
}
