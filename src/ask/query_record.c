// query_record.c - reads the plans of a question, and writes and reads the records of their
// answers.
#include "ask/query_wire.h"

#include <errno.h>

void query_request_add(struct buf *request, const struct query *q,
                       const struct query_limits *limits)
{
    struct buf plan = {0};
    query_plan_write(q, limits, &plan);
    buf_short(request, buf_str(&plan));
    request->failed |= plan.failed;
    buf_free(&plan);
}

int query_request_next(struct bytes *request, struct str *plan)
{
    *plan = bytes_short(request);
    return request->failed || plan->size == 0 ? -EBADMSG : 0;
}

void query_record_add(struct buf *record, size_t plan, struct str part)
{
    buf_varint(record, plan);
    buf_short(record, part);
}

int query_record_take(struct query_gather *const *gathers, size_t count, struct str record,
                      struct error *e)
{
    struct bytes b = bytes_of(record.data, record.size);
    int r = 0;
    while (bytes_left(&b) && r == 0) {
        uint64_t plan = bytes_varint(&b);
        struct str part = bytes_short(&b);
        if (b.failed || plan >= count)
            return error_set(e, -EBADMSG, "a damaged record of partial results");
        r = query_gather_take(gathers[plan], part, e);
    }
    return r;
}

int query_record_make(struct query_gather *const *gathers, size_t count, size_t *next,
                      struct buf *out, struct error *e)
{
    size_t before = out->size;
    struct buf part = {0};
    int r = 0;
    while (*next < count && out->size - before < QUERY_RECORD_BYTES && r >= 0) {
        part.size = 0;
        r = query_gather_part(gathers[*next], &part, e);
        if (r > 0)
            query_record_add(out, *next, buf_str(&part));
        *next += r == 0;
    }
    buf_free(&part);
    return r < 0 ? r : out->size > before;
}
