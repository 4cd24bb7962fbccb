// spill.c - keeps data in memory while the disk has no space for them.
//
//   { u32 kind, u32 set or series, u64 bytes of the payload, payload } …
//
// The spill holds rows, points and events, and definitions of metrics, series and sets.
//
// While the spill is not empty, all new data are appended to it, so that the order of arrival is
// kept (of equal time stamps, the newest wins). Readers do not see it, and it is lost with the
// process; store_tick tries to move it into the file. Its limit is half the memory limit.
#include "store/writer.h"

#include "base/log.h"

#include <assert.h>
#include <errno.h>

enum { SPILL_ROW, SPILL_POINT, SPILL_EVENT, SPILL_DEFINITION };

struct spill_head {
    uint32_t kind, id;
    uint64_t bytes;
};

static int64_t values_of(const struct spill_head *head)
{
    return head->kind == SPILL_ROW ? (int64_t)head->bytes / 8 - 1 : head->kind != SPILL_DEFINITION;
}

static int reserve(struct store *s, size_t payload)
{
    s->spill.appends.limit = s->limits.memory_bytes / 2;
    size_t more = sizeof(struct spill_head) + payload;
    if (s->spill.appends.size + more <= s->spill.appends.limit &&
        buf_reserve(&s->spill.appends, more))
        return 0;
    s->spill.appends.failed = false;
    return -ENOSPC;
}

static int put(struct store *s, struct spill_head head, const void *first, size_t first_bytes,
               const void *rest)
{
    int rc = reserve(s, head.bytes);
    if (rc)
        return rc;
    buf_add(&s->spill.appends, &head, sizeof head);
    buf_add(&s->spill.appends, first, first_bytes);
    buf_add(&s->spill.appends, rest, head.bytes - first_bytes);
    s->spill.values++;
    loss_waiting(s, values_of(&head));
    return 0;
}

int spill_row(struct store *s, uint32_t set, int64_t t_ns, const double *values)
{
    size_t bytes = s->catalog.sets[set].count * sizeof *values;
    return put(s, (struct spill_head){SPILL_ROW, set, sizeof t_ns + bytes}, &t_ns, sizeof t_ns,
               values);
}

int spill_point(struct store *s, uint32_t series, int64_t t_ns, double value)
{
    return put(s, (struct spill_head){SPILL_POINT, series, 16}, &t_ns, sizeof t_ns, &value);
}

int spill_event(struct store *s, struct str record)
{
    return put(s, (struct spill_head){SPILL_EVENT, 0, record.size}, record.data, record.size, "");
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

int spill_reserve(struct store *s, size_t bytes)
{
    return reserve(s, padded(bytes));
}

// Zeros pad the payload to a multiple of 8; the header's id is the number of padding bytes.
void spill_definition(struct store *s, struct str entries)
{
    static const char zeros[8];
    uint64_t bytes = padded(entries.size);
    struct spill_head head = {SPILL_DEFINITION, (uint32_t)(bytes - entries.size), bytes};
    int rc = put(s, head, entries.data, entries.size, zeros);
    assert(!rc);
    (void)rc;
}

static int replay_one(struct store *s, const struct spill_head *head, const char *payload)
{
    if (head->kind == SPILL_DEFINITION) {
        struct str entries = {payload, head->bytes - head->id};
        int rc = catalog_make_room(s, entries.size);
        if (!rc)
            catalog_write(s, entries);
        return rc;
    }
    if (head->kind == SPILL_EVENT)
        return append_event(s, (struct str){payload, head->bytes});
    int64_t t;
    memcpy(&t, payload, sizeof t);
    // aligned, because all sizes in the spill are multiples of 8
    const double *values = (const double *)(const void *)(payload + sizeof t);
    return head->kind == SPILL_ROW ? append_row(s, head->id, t, values)
                                   : append_point(s, head->id, t, *values);
}

int spill_replay(struct store *s)
{
    while (s->spill.at < s->spill.appends.size) {
        struct spill_head head;
        memcpy(&head, s->spill.appends.data + s->spill.at, sizeof head);
        int rc = replay_one(s, &head, s->spill.appends.data + s->spill.at + sizeof head);
        if (rc)
            return rc;
        s->spill.at += sizeof head + head.bytes;
        loss_waiting(s, -values_of(&head));
    }
    if (s->spill.appends.size)
        log_warning("%s: there is space again; %llu appends and definitions that were kept in "
                    "memory are in the file now",
                    s->path, (unsigned long long)s->spill.values);
    buf_free(&s->spill.appends);
    s->spill.at = 0;
    s->spill.values = 0;
    s->reported.space = false;
    return 0;
}

void spill_lose(struct store *s)
{
    log_warning("%s: %llu values and events are lost: there was no space for them", s->path,
                (unsigned long long)store_waiting(s));
    s->stats.refused_space += store_waiting(s);
    loss_of_waiting(s);
}
